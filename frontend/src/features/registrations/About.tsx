import { Anchor, Group, Text, Title } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { draftSearch } from "../filters/address";
import { draftOf } from "../filters/draft";
import { Warnings } from "../filters/Warnings";
import { Block } from "../../parts/Block";
import { Facts } from "../../parts/Facts";
import { Json } from "../../parts/Json";
import { Moment } from "../../parts/Moment";
import { whole } from "../../parts/text";
import type { Registration } from "./registrations";
import { RegistrationState } from "./RegistrationState";

interface Props {
  zone: string;
  registration: Registration;
}

/** A registration's filter, report and start position. */
export function About({ zone, registration }: Props) {
  const { group, key, session, session_group: sessions } = registration;
  return (
    <>
      <Facts
        facts={[
          ["Client", registration.client],
          ["Streams", registration.streams.join(", ")],
          ["State", <RegistrationState key="state" zone={zone} registration={registration} />],
          ["Group", group === null ? "none" : <GroupLink key="group" zone={zone} name={group} client={registration.client} />],
          ...(session === null ? [] : [["Session", session] as const]),
          ...(sessions === null ? [] : [["Session group", sessions] as const]),
          ...(key === null ? [] : [["Key", <span key="key" className="mono">{key}</span>] as const]),
          ["Callback", <Callback key="callback" zone={zone} registration={registration} />],
          ["Version", registration.version],
          ["Created", <Moment key="created" at={registration.created_at} />],
        ]}
      />
      <FilterSection zone={zone} registration={registration} />
      {registration.report !== null && (
        <section>
          <Title order={2} mb="xs">
            Report
          </Title>
          <Json value={registration.report} label="its report" />
        </section>
      )}
      <section>
        <Title order={2}>From</Title>
        <Text size="sm" c="dimmed" mb="xs">
          This version matches events after these positions.
        </Text>
        <Facts
          facts={Object.entries(registration.from).map(([stream, cursor]) => [
            stream,
            <span key={stream}>
              {whole(cursor.sequence)} <span className="mono">in segment {cursor.segment}</span>
            </span>,
          ])}
        />
      </section>
    </>
  );
}

function FilterSection({ zone, registration }: Props) {
  const { domain, type, application, attributes, filter, language, predicate, signature, streams } = registration;
  const search = draftSearch(draftOf(registration), attributes);
  if (streams[0] !== undefined) search.set("stream", streams[0]);
  return (
    <section>
      <Group justify="space-between" mb="xs">
        <Title order={2}>Filter</Title>
        <Group gap="md">
          <Anchor component={Link} to={`${pathIn(zone, "filters")}?${search.toString()}`} size="sm">
            Try this filter
          </Anchor>
          <Anchor component={Link} to={`${pathIn(zone, "jobs/backtest")}?${search.toString()}`} size="sm">
            Back-test this filter
          </Anchor>
        </Group>
      </Group>
      <Warnings zone={zone} warnings={registration.warnings} equalTo={registration.equal_to} />
      {filter === null ? (
        <Json value={{ domain, type, application, attributes }} label="its filter" />
      ) : (
        <>
          <Text size="sm" c="dimmed" mb={4}>
            Written in the {language} language:
          </Text>
          {typeof filter === "string" ? <Block text={filter} label="its filter" copy="Copy the filter" wraps /> : <Json value={filter} label="its filter" />}
        </>
      )}
      <Text size="sm" c="dimmed" mt="sm" mb={4}>
        In predicate form:
      </Text>
      <Block text={predicate} label="in predicate form" copy="Copy the predicate" wraps />
      <Text size="sm" mt="sm">
        <Text span c="dimmed">
          Signature:{" "}
        </Text>
        {signature.length === 0 ? "demands no property" : <span className="mono">{signature.join(", ")}</span>}
      </Text>
    </section>
  );
}

function GroupLink({ zone, name, client }: { zone: string; name: string; client: string }) {
  return (
    <Anchor component={Link} to={`${pathIn(zone, "groups")}?client=${encodeURIComponent(client)}`} size="sm">
      {name}
    </Anchor>
  );
}

function Callback({ zone, registration: { endpoint, callback } }: Props) {
  if (endpoint === null) return "none";
  return (
    <>
      <span className="mono">{callback}</span>{" "}
      <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?endpoint=${endpoint}`} size="sm">
        Deliveries
      </Anchor>
    </>
  );
}
