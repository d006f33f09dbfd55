import { Anchor, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { api, done } from "../../api/client";
import { pathIn } from "../../api/zone";
import { Moment } from "../../parts/Moment";
import { whole } from "../../parts/text";

/** The last start of the hub and its position in `system`; `boot` as a start means this position. */
export function Boot({ zone }: { zone: string }) {
  const { data } = useQuery({
    queryKey: ["boot", zone],
    queryFn: () => done(api.GET("/v1/boot", { params: { query: { zone } } })),
    staleTime: 30_000,
    retry: false,
  });
  if (data === undefined) return null;
  return (
    <Text size="sm" c="dimmed" className="number">
      The hub started <Moment at={data.started_at} />
      {data.sequence > 0 && (
        <>
          , as{" "}
          <Anchor component={Link} to={`${pathIn(zone, `streams/${data.stream}/events`)}?event=${data.sequence}`} size="sm">
            {data.stream} {whole(data.sequence)}
          </Anchor>{" "}
          tells
        </>
      )}
      .
    </Text>
  );
}
