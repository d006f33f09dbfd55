import { Anchor, SimpleGrid } from "@mantine/core";
import { Link } from "react-router";

import { pathIn, useZone } from "../../api/zone";
import { Figure } from "../../parts/Figure";
import { count, counted, rate as rateText, whole } from "../../parts/text";
import type { Overview } from "./readings";

export function Figures({ overview, rate }: { overview: Overview; rate: number | null }) {
  const zone = useZone();
  const { backlog, endpoints } = overview;
  return (
    <SimpleGrid cols={{ base: 2, sm: 3, lg: 5 }} spacing="md">
      <Figure
        label="Events"
        value={whole(overview.events)}
        about={rate === null ? "in total" : `${rateText(rate)} per second now`}
      />
      <Figure
        label="Registrations"
        value={count(overview.registrations)}
        about={<To page={pathIn(zone, "registrations")} label="Show them" />}
      />
      <Figure
        label="Endpoints"
        value={count(endpoints.total)}
        about={<EndpointsAbout endpoints={endpoints} />}
      />
      <Figure
        label="Pending deliveries"
        value={counted(backlog.pending)}
        about={pendingAbout(backlog)}
      />
      <Figure
        label="Dead-lettered deliveries"
        value={count(backlog.dead_lettered)}
        about={backlog.dead_lettered === 0 ? undefined : <To page={pathIn(zone, "dead-letters")} label="Show them" />}
      />
    </SimpleGrid>
  );
}

/** The hub counts what is due only while few deliveries are pending. */
function pendingAbout({ pending, due }: Overview["backlog"]): string | undefined {
  if (pending === null) return undefined;
  return due === null ? "at the last count" : `${whole(due)} due now`;
}

function EndpointsAbout({ endpoints: { failing, disabled } }: { endpoints: Overview["endpoints"] }) {
  const zone = useZone();
  const parts = [failing > 0 && `${whole(failing)} failing`, disabled > 0 && `${whole(disabled)} disabled`].filter((part) => part !== false);
  if (parts.length === 0) return "none failing, all enabled";
  return <To page={pathIn(zone, "endpoints")} label={parts.join(", ")} />;
}

function To({ page, label }: { page: string; label: string }) {
  return (
    <Anchor component={Link} to={page} size="xs">
      {label}
    </Anchor>
  );
}
