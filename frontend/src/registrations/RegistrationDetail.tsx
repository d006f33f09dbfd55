import { Alert, Anchor, Button, Code, Group, Stack, Text, Title } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPencil } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import type { Loaded } from "../api/client";
import { pathIn } from "../api/zone";
import { Facts } from "../parts/Facts";
import { Json } from "../parts/Json";
import { Loading } from "../parts/Loading";
import { Moment } from "../parts/Moment";
import { ProblemAlert } from "../parts/ProblemAlert";
import { Removal } from "../parts/Removal";
import { whole } from "../parts/text";
import { Undisturbed } from "../parts/Undisturbed";
import { RegistrationForm } from "./RegistrationForm";
import { oneRegistration, type Registration, useChangeRegistration, useDeleteRegistration } from "./registrations";

interface Props {
  zone: string;
  id: number;
  onEnded: () => void;
}

/** One registration, and what can be done with it. */
export function RegistrationDetail({ zone, id, onEnded }: Props) {
  const [editing, { open, close }] = useDisclosure(false);
  const remove = useDeleteRegistration(zone, id);
  const { data, error, isError, refetch } = useQuery(oneRegistration(zone, id));
  if (isError) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  if (editing)
    return (
      <Undisturbed found={data} reload={refetch}>
        {(found, renew) => <Editing zone={zone} found={found} onClose={close} onReload={renew} />}
      </Undisturbed>
    );
  return (
    <Stack gap="lg">
      <About zone={zone} registration={data.value} />
      <Group gap="xs">
        <Button variant="default" leftSection={<IconPencil size={16} />} onClick={open}>
          Edit
        </Button>
        <Removal
          title={`Delete registration ${id}?`}
          about="Events appended from then on are not matched for it any more. What is owed already is still delivered."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onEnded })}
        />
      </Group>
    </Stack>
  );
}

function About({ zone, registration }: { zone: string; registration: Registration }) {
  const { domain, type, application, attributes, filter, language, predicate, warnings } = registration;
  return (
    <>
      <Facts
        facts={[
          ["Client", `${registration.client}, session ${registration.session}`],
          ["Streams", registration.streams.join(", ")],
          ["Callback", <Callback key="callback" zone={zone} registration={registration} />],
          ["Version", registration.version],
          ["Created", <Moment key="created" at={registration.created_at} />],
        ]}
      />
      <section>
        <Title order={2} mb="xs">
          Asks for
        </Title>
        {warnings.map((warning) => (
          <Alert key={warning} color="yellow" variant="light" mb="xs" title={WARNINGS[warning]} />
        ))}
        {filter === null ? (
          <Json value={{ domain, type, application, attributes }} label="what it asks for" />
        ) : (
          <>
            <Text size="sm" c="dimmed" mb={4}>
              Written in the {language} language:
            </Text>
            {typeof filter === "string" ? <Code block>{filter}</Code> : <Json value={filter} label="what it asks for" />}
          </>
        )}
        <Text size="sm" c="dimmed" mt="sm" mb={4}>
          In predicate form:
        </Text>
        <Code block>{predicate}</Code>
      </section>
      <section>
        <Title order={2}>From</Title>
        <Text size="sm" c="dimmed" mb="xs">
          Events after these places are matched by this version.
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

const WARNINGS = {
  never_matches: "No event can match this filter",
  always_matches: "Every event matches this filter",
} as const;

interface EditingProps {
  zone: string;
  found: Loaded<Registration>;
  onClose: () => void;
  onReload: () => void;
}

function Editing({ zone, found: { value, etag }, onClose, onReload }: EditingProps) {
  const change = useChangeRegistration(zone, value.id, etag);
  return (
    <RegistrationForm
      zone={zone}
      client={value.client}
      registration={value}
      error={change.error}
      busy={change.isPending}
      action="Save"
      aside={
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
      }
      onSubmit={(asked, callback) =>
        change.mutate(
          { ...asked, endpoint: callback.kind === "endpoint" ? callback.endpoint : null },
          { onSuccess: onClose },
        )
      }
      onReload={onReload}
    />
  );
}

function Callback({ zone, registration: { endpoint, callback } }: { zone: string; registration: Registration }) {
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
