"""JUnit XML, as Maven, Gradle, pytest, PHPUnit, gotestsum and many others write it.

The document is streamed through expat. A document type declaration is refused, and with it every entity.
"""

from xml.parsers import expat

from touchstone.validation.test_reports.results import Outcome, ReportFormatError, SuiteResults

_NOT_RUN = ("notrun", "disabled", "skipped")


def read(text: str) -> SuiteResults:
    """The results in one document. A test is named `classname.name`.

    >>> read('<testsuite><testcase classname="shop.CartTest" name="adds"/></testsuite>').outcomes
    {'shop.CartTest.adds': 'passed'}
    """
    document = _Document()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler, parser.EndElementHandler = document.start, document.end
    try:
        parser.Parse(text.strip().encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        raise ReportFormatError(f"is not whole XML ({error})") from None
    return document.found


def normal(name: str) -> str:
    """A test's name as `read` spells it, from the spelling of Maven or pytest.

    >>> normal("shop.CartTest#adds"), normal("tests/test_cart.py::TestCart::test_add[a/b]")
    ('shop.CartTest.adds', 'tests.test_cart.TestCart.test_add[a/b]')
    """
    path, bracket, parameters = name.partition("[")
    path = path.replace(".py::", ".").replace("::", ".").replace("#", ".").replace("/", ".")
    return path + bracket + parameters


def _refuse_doctype(*declaration: object) -> None:
    raise ReportFormatError("has a document type declaration, which is refused")


class _Document:
    """The state while a document is parsed."""

    def __init__(self) -> None:
        self.found = SuiteResults()
        self._root_seen = False
        self._case: tuple[str, str] | None = None
        self._outcome: Outcome = "passed"
        self._message = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._root_seen and tag not in ("testsuites", "testsuite"):
            raise ReportFormatError(f"has the root element <{tag[:50]}> instead of <testsuites> or <testsuite>")
        self._root_seen = True
        if tag == "testcase":
            if self._case is not None:  # one result would hide the other
                raise ReportFormatError("has a <testcase> inside another one")
            self._case = (attributes.get("classname", ""), attributes.get("name", ""))
            self._outcome = "skipped" if attributes.get("status", "").lower() in _NOT_RUN else "passed"
            self._message = ""
        elif tag in ("failure", "error"):
            self._outcome = "failed"
            self._message = self._message or attributes.get("message", "")
            if self._case is None:
                self.found.error(f"the suite reports {'an error' if tag == 'error' else 'a failure'}", self._message)
        elif tag == "skipped" and self._outcome == "passed" and attributes.get("type") != "pytest.xfail":
            self._outcome = "skipped"

    def end(self, tag: str) -> None:
        if tag != "testcase" or self._case is None:
            return
        classname, name = self._case
        self._case = None
        if not classname and self._message == "collection failure":  # pytest: a file that cannot be imported
            self.found.error(f"cannot be collected: {name}")
        else:
            self.found.add(normal(f"{classname}.{name}" if classname else name), self._outcome, self._message)
