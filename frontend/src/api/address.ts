/** The parameters of a page's address. Parsing is strict: an unreadable parameter is a fault, and the page shows nothing instead. */

import { useCallback, useLayoutEffect, useRef } from "react";
import { type NavigateOptions, useSearchParams } from "react-router";

const NUMBER_MAX = 999_999_999_999_999;

/** The faults by name of the parameter. */
export type Faults = Record<string, string>;

/** Read an id from the address; undefined if it is missing or a fault. */
export function numberAt(search: URLSearchParams, name: string, faults: Faults): number | undefined {
  const text = search.get(name) ?? "";
  if (text === "") return undefined;
  const found = numberIn(text);
  if (found === undefined) faults[name] = "Not a whole number from 1 to 999999999999999.";
  return found;
}

/** Read a time, in RFC 3339, from the address; undefined if it is missing or a fault. */
export function timeAt(search: URLSearchParams, name: string, faults: Faults): string | undefined {
  const text = search.get(name) ?? "";
  if (text === "") return undefined;
  const readable = /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text));
  if (!readable) faults[name] = "Not a time as 2026-11-25T08:00:00Z.";
  return readable ? text : undefined;
}

export function numberIn(text: string): number | undefined {
  const found = /^[0-9]+$/.test(text) ? Number(text) : 0;
  return found >= 1 && found <= NUMBER_MAX ? found : undefined;
}

export function isFaulty(faults: Faults): boolean {
  return Object.keys(faults).length > 0;
}

/** Changes the latest parameters: two changes may come before the page is drawn again. */
export type ChangeAddress = (change: (latest: URLSearchParams) => URLSearchParams, options?: NavigateOptions) => void;

/** The parameters of the page's address, and how to change them. */
export function useAddress(): [URLSearchParams, ChangeAddress] {
  const [search, setSearch] = useSearchParams();
  const latest = useRef(search);
  useLayoutEffect(() => {
    latest.current = search;
  }, [search]);
  const change = useCallback<ChangeAddress>(
    (apply, options) => {
      latest.current = apply(latest.current);
      setSearch(latest.current, options);
    },
    [setSearch],
  );
  return [search, change];
}
