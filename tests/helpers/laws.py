"""Laws that scores keep, or are an exception to for a reason that their decorator gives."""

from uetrust.core.registry import LAWS


def check_law(entry, law, is_broken):
    "Fails when a score breaks a law without a reason, or has a reason and keeps the law."
    meaning = LAWS[law][1]
    if law not in entry.exceptions:
        assert not is_broken, (
            f"{entry.name} breaks a law of its kind: {meaning}. If that is right for it, say why in its "
            f"decorator: {law}='...'. If not, look at its formula and at its sign, {entry.sign:+d}"
        )
    else:
        assert is_broken, f"{entry.name} keeps the law that {meaning}: remove {law} from its decorator"
