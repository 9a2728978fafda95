"""A folder in the form of FrameNet 1.7, with one frame."""

from pathlib import Path

SENTENCES = {  # text, target, and elements with their names
    "linked": ("Slowly the old man grew very agitated .", "agitated", {"Experiencer": "the old man"}),
    "long element": ("Slowly the very old man grew agitated .", "agitated", {"Experiencer": "the very old man"}),
    "near": ("The man grew agitated .", "agitated", {"Experiencer": "The man"}),
    "no core element": ("Slowly the old man grew very agitated !", "agitated", {"Degree": "Slowly"}),
    "long sentence": ("Slowly " * 8 + "the man grew agitated .", "agitated", {"Experiencer": "the man"}),
}  # fmt: skip
HEADER = '<?xml version="1.0" encoding="UTF-8"?>\n'
NAMESPACE = 'xmlns="http://framenet.icsi.berkeley.edu"'
UNIT = 'ID="5" name="agitated.a" POS="A" status="S"'
LEXEME = '<lexeme order="1" headword="false" breakBefore="false" POS="A" name="agitated"/>'


def write_framenet(folder: Path) -> Path:
    elements = "".join(
        f'<FE name="{name}" abbrev="{name[:3]}" coreType="{core}" ID="{number}" cDate="d" cBy="x"><definition/></FE>'
        for number, (name, core) in enumerate({"Experiencer": "Core", "Degree": "Peripheral"}.items(), 1)
    )
    sentences = "".join(sentence(number, *parts) for number, parts in enumerate(SENTENCES.values(), 1))
    files = {
        "frame/Upset.xml": f'<frame {NAMESPACE} ID="7" name="Upset" cDate="d" cBy="x"><definition/>{elements}'
        '<FEcoreSet><memberFE ID="1" name="Experiencer"/></FEcoreSet>'
        f'<lexUnit {UNIT} cDate="d" cBy="x" lemmaID="9"><definition/><sentenceCount annotated="1" total="1"/>'
        f"{LEXEME}</lexUnit></frame>",
        "lu/lu5.xml": f'<lexUnit {NAMESPACE} {UNIT} frame="Upset" frameID="7">'
        f'<header><frame><FE name="Experiencer" type="Core"/></frame></header><definition/>{LEXEME}<valences/>'
        f'<subCorpus name="s">{sentences}</subCorpus></lexUnit>',
        "frRelation.xml": f"<frameRelations {NAMESPACE}></frameRelations>",
        "frameIndex.xml": f'<frameIndex {NAMESPACE}><frame mDate="d" name="Upset" ID="7"/></frameIndex>',
        "luIndex.xml": f'<luIndex {NAMESPACE}><lu frameID="7" frameName="Upset" status="S" name="agitated.a" ID="5"/>'
        "</luIndex>",
    }
    for name in ("frame", "lu", "fulltext"):
        (folder / name).mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(HEADER + content)
    return folder


def sentence(number: int, text: str, target: str, elements: dict[str, str]) -> str:
    def label(name: str, part: str) -> str:
        start = text.index(part)
        return f'<label end="{start + len(part) - 1}" start="{start}" name="{name}"/>'

    spans = "".join(label(name, part) for name, part in elements.items())
    return (
        f'<sentence sentNo="0" ID="{number}"><text>{text}</text>'
        f'<annotationSet status="UNANN" ID="{number}1"><layer rank="1" name="PENN"/></annotationSet>'
        f'<annotationSet status="MANUAL" ID="{number}2"><layer rank="1" name="FE">{spans}</layer>'
        f'<layer rank="1" name="GF"/><layer rank="1" name="PT"/>'
        f'<layer rank="1" name="Target">{label("Target", target)}</layer></annotationSet></sentence>'
    )
