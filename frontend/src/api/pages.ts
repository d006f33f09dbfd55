interface Page<T> {
  items: T[];
  next: unknown; // null at the end
}

/** The items of all pages that were read so far. */
export function itemsOf<T>(data: { pages: Page<T>[] } | undefined): T[] {
  return data?.pages.flatMap((page) => page.items) ?? [];
}

/** For useInfiniteQuery: the hub's `next` is the following page's `after`. */
export const PAGING = {
  initialPageParam: undefined as string | undefined,
  getNextPageParam: (page: { next: string | null }) => page.next ?? undefined,
};
