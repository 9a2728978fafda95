"""Documents: paragraphs that tell a story about a few people and things, with gold trees and coreference."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from conllu.models import Metadata, TokenList

from analysis.errors import InputError
from analysis.texts.bundled.cast import Member, draw_cast
from analysis.texts.bundled.discourse import Discourse, find_slots
from analysis.texts.bundled.events import draw_event, statement_frames
from analysis.texts.bundled.grammar import Sentence, Word, build, sentence
from analysis.texts.bundled.lexicon import read
from analysis.texts.bundled.meanings import Meaning, draw, express
from analysis.texts.bundled.splits import belongs, check_split
from analysis.texts.bundled.trees import entity_rows

# The least and most words in a document, with punctuation, and sentences in a paragraph.
LENGTHS = range(60, 201)
SENTENCES = range(3, 7)
# The parts of a plot that a story with this number of paragraphs tells.
PARTS = {2: (1, 3), 3: (0, 1, 3), 4: (0, 1, 2, 3)}
# Of the sentences within a paragraph: the share from its plot, and the share of events from `frames.yaml`.
PLOT_SHARE, EVENT_SHARE = 0.55, 0.2
MOMENT_SHARE = 0.7
EVENT_PARTS = {
    "manner": 0.4,
    "time": 0.0,
    "place": 0.0,
    "circumstance": 0.25,
    "reason": 0.25,
    "aftermath": 0.0,
}
# Words around a mention that depend on its head word but do not belong to it.
AROUND = frozenset({"case", "cc", "conj", "punct", "mark"})

Text = list[list[Sentence]]
Casting = Mapping[str, Member]


class Story(NamedTuple):
    """A story in progress: its cast, the frames told so far, and what the text has said."""

    cast: Mapping[str, list[Member]]
    told: set[str]
    discourse: Discourse
    rng: Random


class Extent(NamedTuple):
    """A mention in a sentence: its first and last word (0-based), and the member that it mentions."""

    start: int
    end: int
    entity: str


def tell(frame: str, casting: Casting, parts: Mapping[str, Meaning | None], story: Story) -> Sentence:
    """The sentence of a frame about members of the cast; other slots get their content from `parts` or at random."""
    story.told.add(frame)
    fillings = {}
    for slot in find_slots(frame):
        role = slot.name.rstrip("0123456789")
        if role in casting:
            fillings[slot.name] = story.discourse.mention(casting[role], slot)
        else:
            content = parts[role] if role in parts else draw(role, story.rng)
            fillings[slot.name] = express(content, story.rng)
    story.discourse.end_sentence()
    return sentence(build(frame, fillings))


def main_roles(story: Story) -> Casting:
    """The casting of the plot: the first two people and the first thing."""
    first, second, *_ = story.cast["person"]
    return {"who": first, "whom": second} | {
        role: story.cast[role][0] for role in ("group", "thing", "place")
    }


def any_roles(story: Story) -> Casting:
    """The casting of sentences outside the plot: any two people, anything."""
    who, whom = story.rng.sample(story.cast["person"], 2)
    return {"who": who, "whom": whom} | {
        role: story.rng.choice(story.cast[role]) for role in ("group", "thing", "place")
    }


def draw_frame(frames: Collection[str], story: Story) -> str | None:
    """A frame that the story has not told yet."""
    left = [frame for frame in frames if ended(frame) not in story.told]
    return ended(story.rng.choice(left)) if left else None


def ended(frame: str) -> str:
    """A frame with its full stop."""
    return f"{frame} ./punct"


@cache
def events_between(subject: str, object_: str) -> tuple[int, ...]:
    """The events of `frames.yaml` in which one class of people acts on another."""
    events = read("frames")["events"]
    return tuple(
        index
        for index, event in enumerate(events)
        if (event["subject"], event["object"]) == (subject, object_)
    )


def tell_event(story: Story) -> Sentence | None:
    """An event in which one of the people acts on another, if their callings have such events."""
    subject, object_ = story.rng.sample(story.cast["person"], 2)
    indices = events_between(subject.calling, object_.calling)
    if not indices:
        return None
    event = draw_event(story.rng.choice(indices), EVENT_PARTS, story.rng)
    frame = story.rng.choice(statement_frames()[0])
    return tell(frame, {"subject": subject, "object": object_}, event.parts, story)


def tell_middle(part: Mapping[str, list[str]], story: Story) -> Sentence:
    """A sentence within a paragraph: from its part of the plot, an event, or a remark."""
    chance = story.rng.random()
    plotted = draw_frame(part["middle"], story)
    if plotted and chance < PLOT_SHARE:
        return tell(plotted, main_roles(story), {}, story)
    event = tell_event(story) if chance > 1 - EVENT_SHARE else None
    return event or tell(draw_frame(read("stories")["remarks"], story), any_roles(story), {}, story)


def tell_paragraph(
    part: Mapping[str, list[str]], first: bool, last: bool, story: Story
) -> Iterator[Sentence]:
    """A paragraph about one part of the plot, sentence by sentence."""
    begin = draw_frame(part["begin"], story)
    if not first and begin.startswith("(nsubj") and story.rng.random() < MOMENT_SHARE:
        moment = story.rng.choice([each for each in read("stories")["moments"] if each not in story.told])
        story.told.add(moment)
        begin = f"{moment} {begin}"
    yield tell(begin, main_roles(story), {}, story)
    for _ in range(story.rng.choice(SENTENCES) - 1 - last):
        yield tell_middle(part, story)
    if last:
        yield tell(draw_frame(part["end"], story), main_roles(story), {}, story)
    story.discourse.end_paragraph()


def draw_text(split: str, rng: Random) -> Text | None:
    """The paragraphs of a story, or None if its first sentence falls into another split."""
    stories = read("stories")
    plot = rng.choice([*stories["plots"].values()])
    cast = draw_cast(rng.choice(stories["settings"]), plot["groups"], rng)
    story = Story(cast, set(), Discourse(rng), rng)
    opening, *others = PARTS[rng.choice([*PARTS])]
    paragraph = tell_paragraph(plot["parts"][opening], True, False, story)
    first = next(paragraph)
    if not belongs(first.text.lower(), split):
        return None
    last = others[-1]
    text = [[first, *paragraph]]
    return text + [[*tell_paragraph(plot["parts"][part], False, part == last, story)] for part in others]


def key(text: Text) -> str:
    """The key of a document: its lower-cased texts; documents with the same key are duplicates."""
    return "\n".join(said.text.lower() for paragraph in text for said in paragraph)


def suits(text: Text) -> bool:
    """Whether a text has a natural length and says nothing twice."""
    told = [said for paragraph in text for said in paragraph]
    distinct = {said.text for said in told}
    return sum(len(said) for said in told) in LENGTHS and len(distinct) == len(told)


def draw_texts(n: int, split: str, rng: Random) -> Iterator[Text]:
    """`n` different texts of a split."""
    seen: set[str] = set()
    while len(seen) < n:
        text = draw_text(split, rng)
        if text and key(text) not in seen and suits(text):
            seen.add(key(text))
            yield text


def below(words: Sequence[Word], position: int) -> list[int]:
    """The words (0-based) of a mention, given its head word: its subtree, without words that only join it to others."""
    children = [
        index
        for index, word in enumerate(words)
        if word.head == position + 1 and (word.label not in AROUND or word.xpos == "POS")
    ]
    inside = [position]
    while children:
        inside += children
        children = [index for index, word in enumerate(words) if word.head - 1 in children]
    return inside


def extents(said: Sentence) -> list[Extent]:
    """The mentions of a sentence, without punctuation at their ends."""
    found = []
    for position, word in enumerate(said.words):
        if word.entity:
            inside = [index for index in below(said.words, position)]
            last = max(index for index in inside if said.words[index].upos != "PUNCT")
            found.append(Extent(min(inside), last, word.entity))
    return found


def brackets(mentions: Sequence[Extent]) -> dict[int, str]:
    """The `Entity` field of each word at the end of a mention; the outer of two opens first and closes last."""
    opens = sorted((m for m in mentions if m.start < m.end), key=lambda m: (m.start, -m.end))
    closes = sorted((m for m in mentions if m.start < m.end), key=lambda m: (m.end, -m.start))
    marks = [(m.start, f"({m.entity}") for m in opens]
    marks += [(m.start, f"({m.entity})") for m in mentions if m.start == m.end]
    marks += [(m.end, f"{m.entity})") for m in closes]
    fields: dict[int, str] = {}
    for position, mark in marks:
        fields[position] = fields.get(position, "") + mark
    return fields


def chains(text: Text) -> dict[str, str]:
    """The chain number of each member with more than one mention, in order of mention."""
    mentioned = [mention.entity for paragraph in text for said in paragraph for mention in extents(said)]
    again = [entity for entity in dict.fromkeys(mentioned) if mentioned.count(entity) > 1]
    return {entity: str(number) for number, entity in enumerate(again, start=1)}


def trees(name: str, text: Text) -> Iterator[TokenList]:
    """The sentences of a document in CoNLL-U."""
    numbers, count = chains(text), 0
    for paragraph in text:
        for position, said in enumerate(paragraph):
            metadata = {"newdoc id": name} if count == 0 else {}
            metadata |= {"newpar": None} if position == 0 else {}
            metadata |= {"sent_id": f"{name}-{count:02d}", "text": said.text}
            mentions = [m._replace(entity=numbers[m.entity]) for m in extents(said) if m.entity in numbers]
            yield TokenList(list(entity_rows(said, brackets(mentions))), Metadata(metadata))
            count += 1


def generate_documents(n: int, split: str, seed: int) -> str:
    """CoNLL-U of `n` documents with gold trees (UD v2) and gold coreference in `Entity` brackets, no singletons.

    A document has two to four paragraphs of three to six sentences, 60 to 200 words. The splits train, dev and test
    share no document, whatever the seed: a digest of the first sentence decides the split. The same arguments always
    give the same text. Raises `InputError` for an unknown split or `n` < 1.
    """
    check_split(split)
    if n < 1:
        raise InputError(f"n is {n}: ask for 1 or more documents")
    texts = draw_texts(n, split, Random(f"documents {split} {seed}"))
    named = ((f"documents-{split}-{index:04d}", text) for index, text in enumerate(texts))
    return "".join(tree.serialize() for name, text in named for tree in trees(name, text))
