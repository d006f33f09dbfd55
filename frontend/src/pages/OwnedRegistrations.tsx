import { Anchor, Title } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { type Registration, type RegistrationFilter, useRegistrations } from "../features/registrations/registrations";
import { RegistrationState } from "../features/registrations/RegistrationState";
import { summary } from "../features/registrations/summary";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Listed } from "../parts/Listed";

interface Props {
  zone: string;
  of: string; // `group`
  filter: RegistrationFilter;
}

/** The registrations in a group, or of a session or session group. */
export function OwnedRegistrations({ zone, of, filter }: Props) {
  return (
    <section>
      <Title order={2} mb="xs">
        Registrations
      </Title>
      <Listed
        list={useRegistrations(zone, filter)}
        label={`Registrations of the ${of}`}
        columns={columnsIn(zone)}
        keyOf={({ id }) => String(id)}
        minWidth={480}
        empty={<Empty title={`No registrations in the ${of}`} about={`Choose this ${of} in a registration of its client.`} />}
      />
    </section>
  );
}

const columnsIn = (zone: string): Column<Registration>[] => [
  {
    title: "Registration",
    cell: ({ id }) => (
      <Anchor component={Link} to={`${pathIn(zone, "registrations")}?registration=${id}`} size="sm">
        {id}
      </Anchor>
    ),
  },
  { title: "State", cell: (one) => <RegistrationState zone={zone} registration={one} /> },
  { title: "Streams", cell: ({ streams }) => <span title={streams.join(", ")}>{streams.join(", ")}</span>, width: 150 },
  { title: "Filter", cell: (one) => <span title={summary(one)}>{summary(one)}</span>, width: 240 },
];
