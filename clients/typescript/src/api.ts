/** The types of `HubClient.call`, derived from the OpenAPI document. */

import type { paths } from "./generated/openapi.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

type Operation<M extends Method, P extends keyof paths> = NonNullable<
  paths[P][Lowercase<M> & keyof paths[P]]
>;

/** The paths that have a method. */
export type PathsWith<M extends Method> = {
  [P in keyof paths]: [Operation<M, P>] extends [never] ? never : P;
}[keyof paths] &
  string;

type Parameters<O, Where extends string> = O extends { parameters: infer All }
  ? Where extends keyof All
    ? NonNullable<All[Where]>
    : unknown
  : unknown;
type Json<C> = C extends { content: { "application/json": infer Body } } ? Body : never;
type BodyOf<O> = O extends { requestBody?: infer Body } ? Json<NonNullable<Body>> : never;

type Fields<O> = (unknown extends Parameters<O, "path"> ? object : { path: Parameters<O, "path"> }) &
  (unknown extends Parameters<O, "query"> ? object : { query?: Parameters<O, "query"> }) &
  ([BodyOf<O>] extends [never] ? object : { body: BodyOf<O> }) & {
    /** The ETag of the resource: if it has changed since, `Changed` is thrown. */
    ifMatch?: string;
    signal?: AbortSignal;
  };

/** The last argument of a call, which may be left out if nothing in it is required. */
export type CallArguments<M extends Method, P extends keyof paths> =
  object extends Fields<Operation<M, P>>
    ? [given?: Fields<Operation<M, P>>]
    : [given: Fields<Operation<M, P>>];

type Success = 200 | 201 | 202;

/** The JSON of a successful answer; undefined if it has none. */
export type Answer<M extends Method, P extends keyof paths> =
  Operation<M, P> extends { responses: infer Responses }
    ? { [S in Success & keyof Responses]: Json<Responses[S]> }[Success & keyof Responses] extends infer Found
      ? [Found] extends [never]
        ? undefined
        : Found
      : never
    : never;
