"""Words under a figure: findings as Markdown, lists and small numbers in words."""

from collections.abc import Iterable

from IPython.display import Markdown


def finding(text: str) -> Markdown:
    """What a figure shows, for display under it in a notebook; it becomes the figure's alternative text."""
    return Markdown(f"**Finding.** {text}")


def listed(names: Iterable[object]) -> str:
    """Names joined as in a sentence: a; a and b; a, b and c."""
    *first, last = [str(name) for name in names] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def counted(number: int, noun: str) -> str:
    """A number and its noun, in the plural where needed: no heads, 1 head, 2 heads."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else f"no {noun}s"


def signed(number: float) -> str:
    """A number with its sign and one decimal, in print: +1.0, −0.2."""
    return f"{number:+.1f}".replace("-", "−")
