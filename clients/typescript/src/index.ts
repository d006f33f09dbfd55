/** The public names of @eventhub/client. */

export type { Answer, CallArguments, Method, PathsWith } from "./api.ts";
export { sign, UnverifiedCallback, verify } from "./callbacks.ts";
export { cursorText, parseCursor } from "./cursor.ts";
export type { Cursor, Start } from "./cursor.ts";
export * from "./errors.ts";
export type { components as AsyncApi } from "./generated/asyncapi.ts";
export type { components as OpenApi, paths } from "./generated/openapi.ts";
export type { Credential } from "./http.ts";
export { HubClient } from "./hub.ts";
export type { EmitOptions, HistoryOptions, ListenOptions } from "./hub.ts";
export type { Lost, OnGap } from "./listening.ts";
export type { Filter } from "./position.ts";
export { ConsumerSession } from "./session.ts";
export type { AcknowledgeOptions, PullOptions, SessionOptions } from "./session.ts";
export type { Transport } from "./transports.ts";
export type { Delivered, EventIn, HubEvent, Page, Receipt, Snapshot, StateItem } from "./types.ts";
