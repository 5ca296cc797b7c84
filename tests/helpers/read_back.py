"""What the tests of read_back share."""

import json


def reply(k, document, text, *spans, model="llama-2-7b-chat", quality="good", split="test"):
    labels = [
        dict(start=start, end=end, text=text[start:end], meta="said by a person", label_type=kind)
        | dict(implicit_true=False, due_to_null=False)
        for start, end, kind in spans
    ]
    about = dict(id=str(k), source_id=document, model=model, temperature=0.7, split=split, quality=quality)
    return about | dict(labels=labels, response=text)


def put(folder, replies, sources):
    (folder / "ragtruth").mkdir(exist_ok=True)
    for name, records in (("response", replies), ("source_info", sources)):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / "ragtruth" / f"{name}.jsonl").write_text(text)
    return folder


def sources_of(documents, prompts):
    return [
        dict(source_id=document, task_type="Summary", source="CNN/DM", source_info=prompt, prompt=prompt)
        for document, prompt in zip(documents, prompts)
    ]
