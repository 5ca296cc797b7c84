"""What the tests of forward share."""


# Loading
def saved(path, model, words=None, **options):
    model.save_pretrained(path, **options)
    if words:
        words.save_pretrained(path)
    return path
