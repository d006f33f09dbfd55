"""The providers, one module each: one more is one file and one line here. Plain module."""

from typing import Any

import msgspec

from eventhub.event.inbound import refuse_json
from registrations.sources.providers import (
    api_key,
    basic,
    github,
    hmac_header,
    shopify,
    slack,
    standard_webhooks,
    stripe,
    twilio,
)
from registrations.sources.providers.provider import Provider

PROVIDERS: dict[str, Provider] = {
    one.PROVIDER.name: one.PROVIDER
    for one in (
        *(standard_webhooks, github, stripe, slack, shopify, twilio),
        *(hmac_header, basic, api_key),
    )
}


def parse_options(provider: Provider, given: Any) -> Any:
    """Return the options of a provider's verification. Raises subclasses of BadRequest."""
    try:
        return msgspec.convert(given, provider.options)
    except msgspec.ValidationError as error:
        refuse_json(error)
