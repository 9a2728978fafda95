"""Formulas as MathML when the site is built, so that browsers show them without a script and without a network."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def formula(visitor, node) -> None:
    """Writes a formula; raises MathError for one that docutils cannot read."""
    block = node.tagname == "math_block"
    element = "div" if block else "span"
    visitor.body.append(visitor.starttag(node, element, "", CLASS="formula"))
    visitor.body.append(f"{tex2mathml(node.astext(), as_block=block)}</{element}>")
    raise SkipNode


def without_thebe(app, page, template, context, doctree) -> None:
    """Leaves out the scripts of Thebe, which runs code on a server. Their variables are declared twice, an error."""
    scripts = context["script_files"]
    context["script_files"] = [file for file in scripts if "thebe" not in f"{file} {file.attributes}".lower()]


def setup(app) -> dict[str, bool]:
    """Registers the renderer that _config.yml names."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("html-page-context", without_thebe, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
