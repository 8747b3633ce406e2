"""The section `alerts` of the configuration. How alerts are sent is in `touchstone.publish.alerts`."""

import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator

from touchstone.config.file import Section

WEB_ADDRESS = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?")


class AlertSettings(Section):
    """Where one JSON document goes if a gate, or the comparison with the baseline, does not pass. That it could not be
    sent never fails a run. See [alerts](ci.md#alerts)."""

    webhook: SecretStr | None = None
    """Address that the document is posted to: `https://…`, or `$NAME` for the one in an environment variable. It is
    never printed or stored."""
    command: list[Annotated[str, Field(min_length=1)]] = []
    """Program and arguments; it gets the document on standard input. A program with a `/` is relative to the
    configuration file."""
    timeout_seconds: float = Field(10, gt=0, le=600)
    """How long each of three tries may take."""

    @model_validator(mode="after")
    def _web_address(self) -> Self:
        # Of the section, because the message about a wrong field would quote the address.
        address = self.webhook.get_secret_value() if self.webhook is not None else "$_"
        if not WEB_ADDRESS.fullmatch(address) and not re.fullmatch(r"\$[A-Za-z_]\w*", address):
            raise ValueError("webhook must be an http:// or https:// address without a user name, or $NAME")
        return self

    def anchored(self, base: Path) -> Self:
        """A copy in which the path of the program is absolute."""
        command = [str((base / each).absolute()) if "/" in each else each for each in self.command[:1]]
        return self.model_copy(update={"command": [*command, *self.command[1:]]})
