import { Anchor, Button, Group, Stack } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPencil, IconPlayerPause, IconPlayerPlay } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "react-router";

import type { Loaded } from "../../api/client";
import { pathIn } from "../../api/zone";
import { Facts } from "../../parts/Facts";
import { Loading } from "../../parts/Loading";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { Undisturbed } from "../../parts/Undisturbed";
import { EndpointForm } from "./EndpointForm";
import { type Endpoint, FORMATS, SIGNATURES, oneEndpoint, outcomeOf, useChangeEndpoint, useDeleteEndpoint } from "./endpoints";
import { EndpointState, FailingSince } from "./EndpointState";
import { NewSecret } from "./NewSecret";

interface Props {
  zone: string;
  id: number;
  onEnded: () => void;
}

/** One endpoint with its actions. */
export function EndpointDetail({ zone, id, onEnded }: Props) {
  const [editing, { open, close }] = useDisclosure(false);
  const remove = useDeleteEndpoint(zone, id);
  const { data, error, isError, refetch } = useQuery(oneEndpoint(zone, id));
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={260} />;
  if (editing)
    return (
      <Undisturbed found={data} reload={refetch}>
        {(found, renew) => <Editing zone={zone} found={found} onClose={close} onReload={renew} />}
      </Undisturbed>
    );
  const endpoint = data.value;
  return (
    <Stack gap="lg">
      <Facts facts={factsOf(endpoint)} />
      <Group gap="md">
        <Anchor component={Link} to={`${pathIn(zone, "deliveries")}?endpoint=${id}`} size="sm">
          Its deliveries
        </Anchor>
        <Anchor component={Link} to={`${pathIn(zone, "registrations")}?endpoint=${id}`} size="sm">
          Its registrations
        </Anchor>
      </Group>
      <Actions zone={zone} endpoint={endpoint} onEdit={open}>
        <NewSecret zone={zone} id={id} />
        <Removal
          title={`Delete endpoint ${id}?`}
          about="Pending deliveries to it are cancelled. Delete the registrations that name it first."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onEnded })}
        />
      </Actions>
    </Stack>
  );
}

function factsOf(endpoint: Endpoint): [string, ReactNode][] {
  const { url, client, ordered, format, signature, public_key, description, health } = endpoint;
  return [
    ["URL", <span key="url" className="mono">{url}</span>],
    ["Client", client],
    ["State", <EndpointState key="state" endpoint={endpoint} />],
    ["Last attempt", <LastAttempt key="last" health={health} />],
    ["Last delivered", health.delivered_at === null ? "none" : <Moment key="delivered" at={health.delivered_at} />],
    ["Failing since", <FailingSince key="failing" endpoint={endpoint} />],
    ["Order", ordered ? "in order, one event of a stream at a time" : "in parallel"],
    ["Format", FORMATS.find((one) => one.value === format)?.label ?? format],
    ["Signature", SIGNATURES.find((one) => one.value === signature)?.label ?? signature],
    ["Public key", public_key === null ? "none" : <span key="key" className="mono">{public_key}</span>],
    ["Headers", endpoint.headers?.map(({ name }) => name).join(", ") ?? "none"],
    ["Authentication", endpoint.authentication?.type.replaceAll("_", " ") ?? "none"],
    ["Client certificate", certificateOf(endpoint)],
    ["Description", description || "none"],
    ["Created", <Moment key="created" at={endpoint.created_at} />],
    ["Changed", <Moment key="changed" at={endpoint.changed_at} />],
  ];
}

function certificateOf({ tls }: Endpoint): ReactNode {
  if (tls?.certificate == null) return "none";
  return (
    <>
      {tls.certificate.subject}, expires <Moment at={tls.certificate.not_after} />
    </>
  );
}

function LastAttempt({ health }: { health: Endpoint["health"] }) {
  if (health.last_attempt_at === null) return "none yet";
  return (
    <>
      <Moment at={health.last_attempt_at} />, {outcomeOf(health)}
    </>
  );
}

interface ActionsProps {
  zone: string;
  endpoint: Endpoint;
  onEdit: () => void;
  children: ReactNode;
}

function Actions({ zone, endpoint: { id, enabled }, onEdit, children }: ActionsProps) {
  const change = useChangeEndpoint(zone, id);
  return (
    <>
      {change.isError && <ProblemAlert error={change.error} />}
      <Group gap="xs">
        <Button variant="default" leftSection={<IconPencil size={16} />} onClick={onEdit}>
          Edit
        </Button>
        <Button
          variant="default"
          loading={change.isPending}
          leftSection={enabled ? <IconPlayerPause size={16} /> : <IconPlayerPlay size={16} />}
          onClick={() => change.mutate({ enabled: !enabled })}
        >
          {enabled ? "Disable" : "Enable"}
        </Button>
        {children}
      </Group>
    </>
  );
}

interface EditingProps {
  zone: string;
  found: Loaded<Endpoint>;
  onClose: () => void;
  onReload: () => void;
}

function Editing({ zone, found: { value, etag }, onClose, onReload }: EditingProps) {
  const change = useChangeEndpoint(zone, value.id, etag);
  return (
    <EndpointForm
      endpoint={value}
      error={change.error}
      busy={change.isPending}
      action="Save"
      aside={
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
      }
      onSubmit={(body) => change.mutate(body, { onSuccess: onClose })}
      onReload={onReload}
    />
  );
}
