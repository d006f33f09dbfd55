"""Small XML documents as trees whose nodes know their line and column. DOCTYPE and entities are
refused; size and depth are bounded. Plain module.
"""

from typing import Any, NamedTuple
from xml.sax import SAXException, SAXParseException
from xml.sax.handler import ContentHandler  # only the base class; defusedxml does the reading

import defusedxml.sax
from defusedxml.common import DefusedXmlException

from eventhub.base import limits
from eventhub.base.errors import EventTooLarge
from eventhub.event.errors import InvalidXml, MalformedXml

_PREFIX = "Mspaces:"


class Node(NamedTuple):
    """An element. Its name and those of its attributes have no prefix."""

    name: str
    path: str  # names from the root, with `/` between
    line: int
    column: int
    attributes: dict[str, str]
    children: list["Node"]
    texts: list[str]

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def invalid(self, message: str) -> InvalidXml:
        """Return the error for this element."""
        return InvalidXml(message, field=self.path, line=self.line, column=self.column)


def parse(body: bytes) -> Node:
    """Return the root. Raises MalformedXml, InvalidXml, EventTooLarge."""
    if len(body) > limits.EVENT_BYTES_MAX:
        raise EventTooLarge(bytes=len(body), bytes_max=limits.EVENT_BYTES_MAX)
    handler = _Handler()
    try:
        defusedxml.sax.parseString(body, handler, forbid_dtd=True)
    except DefusedXmlException:
        raise MalformedXml("A document must not have a DOCTYPE or entities.") from None
    except SAXParseException as error:
        line, column = error.getLineNumber(), error.getColumnNumber()
        raise MalformedXml(f"{error.getMessage()}.", line=line, column=column) from None
    except (SAXException, ValueError, LookupError) as error:
        raise MalformedXml(f"{error}."[:200]) from None
    return handler.root


class _Handler(ContentHandler):
    """Builds the nodes. Namespaces are not resolved: names are as they are written."""

    root: Node

    def __init__(self) -> None:
        super().__init__()
        self._open: list[Node] = []
        self._count = 0

    def setDocumentLocator(self, locator: Any) -> None:  # noqa: N802
        self._locator = locator

    def startElement(self, name: str, attrs: Any) -> None:  # noqa: N802
        own = name.removeprefix(_PREFIX)
        parent = self._open[-1] if self._open else None
        node = Node(
            own,
            f"{parent.path}/{own}" if parent else own,
            self._locator.getLineNumber(),
            self._locator.getColumnNumber(),
            {key.removeprefix(_PREFIX): value for key, value in attrs.items()},
            [],
            [],
        )
        self._count += 1
        if self._count > limits.XML_ELEMENTS_MAX or len(self._open) == limits.XML_DEPTH_MAX:
            raise node.invalid("The document has too many elements or is nested too deeply.")
        if parent is None:
            self.root = node
        else:
            parent.children.append(node)
        self._open.append(node)

    def endElement(self, name: str) -> None:  # noqa: N802
        self._open.pop()

    def characters(self, content: str) -> None:
        self._open[-1].texts.append(content)
