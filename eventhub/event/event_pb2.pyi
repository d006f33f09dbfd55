from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SecurityLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MED: _ClassVar[SecurityLevel]
    LOW: _ClassVar[SecurityLevel]
    HIGH: _ClassVar[SecurityLevel]

class Liveness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LIVE: _ClassVar[Liveness]
    RECOVERY: _ClassVar[Liveness]
    PLAYBACK: _ClassVar[Liveness]
MED: SecurityLevel
LOW: SecurityLevel
HIGH: SecurityLevel
LIVE: Liveness
RECOVERY: Liveness
PLAYBACK: Liveness

class EventId(_message.Message):
    __slots__ = ("client", "timestamp_us", "sequence", "incarnation")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_US_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    client: str
    timestamp_us: int
    sequence: int
    incarnation: int
    def __init__(self, client: _Optional[str] = ..., timestamp_us: _Optional[int] = ..., sequence: _Optional[int] = ..., incarnation: _Optional[int] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("producer_id", "text_id", "source", "domain", "type", "name", "version", "attributes", "body", "content_type", "node", "application", "environment", "mask", "priority", "expires_at_us", "time_us", "key", "bundle", "depends", "correlation", "cause", "traceparent", "destinations", "security_level", "summary", "bundle_number", "time_constraint_ms", "merge_scheme", "tombstone", "audience", "order", "filterable_data")
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    TEXT_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    MASK_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_US_FIELD_NUMBER: _ClassVar[int]
    TIME_US_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_FIELD_NUMBER: _ClassVar[int]
    DEPENDS_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    DESTINATIONS_FIELD_NUMBER: _ClassVar[int]
    SECURITY_LEVEL_FIELD_NUMBER: _ClassVar[int]
    SUMMARY_FIELD_NUMBER: _ClassVar[int]
    BUNDLE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_CONSTRAINT_MS_FIELD_NUMBER: _ClassVar[int]
    MERGE_SCHEME_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONE_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    FILTERABLE_DATA_FIELD_NUMBER: _ClassVar[int]
    producer_id: EventId
    text_id: str
    source: str
    domain: str
    type: str
    name: str
    version: str
    attributes: bytes
    body: bytes
    content_type: str
    node: str
    application: _containers.RepeatedScalarFieldContainer[str]
    environment: bytes
    mask: int
    priority: int
    expires_at_us: int
    time_us: int
    key: str
    bundle: str
    depends: _containers.RepeatedScalarFieldContainer[str]
    correlation: str
    cause: str
    traceparent: str
    destinations: _containers.RepeatedScalarFieldContainer[str]
    security_level: SecurityLevel
    summary: str
    bundle_number: int
    time_constraint_ms: int
    merge_scheme: str
    tombstone: bool
    audience: _containers.RepeatedScalarFieldContainer[str]
    order: str
    filterable_data: bool
    def __init__(self, producer_id: _Optional[_Union[EventId, _Mapping]] = ..., text_id: _Optional[str] = ..., source: _Optional[str] = ..., domain: _Optional[str] = ..., type: _Optional[str] = ..., name: _Optional[str] = ..., version: _Optional[str] = ..., attributes: _Optional[bytes] = ..., body: _Optional[bytes] = ..., content_type: _Optional[str] = ..., node: _Optional[str] = ..., application: _Optional[_Iterable[str]] = ..., environment: _Optional[bytes] = ..., mask: _Optional[int] = ..., priority: _Optional[int] = ..., expires_at_us: _Optional[int] = ..., time_us: _Optional[int] = ..., key: _Optional[str] = ..., bundle: _Optional[str] = ..., depends: _Optional[_Iterable[str]] = ..., correlation: _Optional[str] = ..., cause: _Optional[str] = ..., traceparent: _Optional[str] = ..., destinations: _Optional[_Iterable[str]] = ..., security_level: _Optional[_Union[SecurityLevel, str]] = ..., summary: _Optional[str] = ..., bundle_number: _Optional[int] = ..., time_constraint_ms: _Optional[int] = ..., merge_scheme: _Optional[str] = ..., tombstone: _Optional[bool] = ..., audience: _Optional[_Iterable[str]] = ..., order: _Optional[str] = ..., filterable_data: _Optional[bool] = ...) -> None: ...

class EventFrame(_message.Message):
    __slots__ = ("listener", "segment", "sequence", "prev", "liveness", "appended_at_us", "registrations", "latest_version", "signature", "variables", "session", "stream", "out_of_order", "attempt", "event")
    class VariablesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: str
        def __init__(self, key: _Optional[int] = ..., value: _Optional[str] = ...) -> None: ...
    LISTENER_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PREV_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_FIELD_NUMBER: _ClassVar[int]
    APPENDED_AT_US_FIELD_NUMBER: _ClassVar[int]
    REGISTRATIONS_FIELD_NUMBER: _ClassVar[int]
    LATEST_VERSION_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    VARIABLES_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OUT_OF_ORDER_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    listener: str
    segment: str
    sequence: int
    prev: int
    liveness: Liveness
    appended_at_us: int
    registrations: _containers.RepeatedScalarFieldContainer[int]
    latest_version: str
    signature: str
    variables: _containers.ScalarMap[int, str]
    session: str
    stream: str
    out_of_order: str
    attempt: int
    event: bytes
    def __init__(self, listener: _Optional[str] = ..., segment: _Optional[str] = ..., sequence: _Optional[int] = ..., prev: _Optional[int] = ..., liveness: _Optional[_Union[Liveness, str]] = ..., appended_at_us: _Optional[int] = ..., registrations: _Optional[_Iterable[int]] = ..., latest_version: _Optional[str] = ..., signature: _Optional[str] = ..., variables: _Optional[_Mapping[int, str]] = ..., session: _Optional[str] = ..., stream: _Optional[str] = ..., out_of_order: _Optional[str] = ..., attempt: _Optional[int] = ..., event: _Optional[bytes] = ...) -> None: ...

class ServerFrame(_message.Message):
    __slots__ = ("event", "message")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    event: EventFrame
    message: str
    def __init__(self, event: _Optional[_Union[EventFrame, _Mapping]] = ..., message: _Optional[str] = ...) -> None: ...
