import { Alert, Group, Stack, Text, Textarea } from "@mantine/core";
import { IconCertificate } from "@tabler/icons-react";
import { type ReactNode, useState } from "react";

import { errorAt } from "../../api/problem";
import { Facts } from "../../parts/Facts";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { expiryOf } from "./certificates";
import type { Certificate, EndpointChange } from "./endpoints";
import { None } from "./IsSet";
import { RemoveCredential } from "./RemoveCredential";
import { type Editing, type Found, Setting, SettingForm } from "./Setting";

const FIELDS = [
  { name: "certificate", label: "Client certificate", about: "PEM: the certificate, then its chain." },
  { name: "private_key", label: "Private key", about: "PEM, without a password. It is not shown again." },
  { name: "ca", label: "Authorities", about: "PEM. They may sign the server's certificate, instead of the public ones. Empty: the public ones." },
] as const;

/** The certificates of the connection to an endpoint. */
export function Certificates(endpoint: Found) {
  const { tls } = endpoint.found.value;
  return (
    <Setting
      {...endpoint}
      title="Client certificate"
      about="Presented to a server that asks for one (mutual TLS), and the authorities that may sign the server's own."
      action={tls === null ? "Set" : "Replace"}
      aside={tls !== null && <RemoveCredential {...endpoint} kind="tls" name="certificates" />}
      form={CertificatesForm}
    >
      {tls === null && <None />}
      {tls?.certificate != null && <ExpiryAlert certificate={tls.certificate} />}
      {tls !== null && <Facts facts={[...certificateFacts(tls.certificate ?? null), ...tls.ca.map(authorityFact)]} />}
    </Setting>
  );
}

function certificateFacts(certificate: Certificate | null): [string, ReactNode][] {
  if (certificate === null) return [["Client certificate", "none"]];
  const { subject, issuer, serial_number: serial, not_after: end, sha256 } = certificate;
  return [
    ["Subject", subject],
    ["Issuer", issuer],
    ["Serial number", <span key="serial" className="mono">{serial}</span>],
    ["Expires", <Expiry key="expires" end={end} />],
    ["SHA-256", <span key="sha256" className="mono">{sha256}</span>],
  ];
}

function authorityFact({ subject, not_after: end }: Certificate, index: number): [string, ReactNode] {
  const value = (
    <Group gap="xs">
      {subject} <Expiry end={end} />
    </Group>
  );
  return [index === 0 ? "Authorities" : `Authority ${index + 1}`, value];
}

function Expiry({ end }: { end: string }) {
  const [now] = useState(Date.now);
  const { state, text } = expiryOf(end, now);
  return (
    <Group gap={8}>
      <State state={state} label={text} />
      <Moment at={end} />
    </Group>
  );
}

/** Whether a client certificate has expired or soon will, as a badge. */
export function CertificateState({ certificate }: { certificate: Certificate | null }) {
  const [now] = useState(Date.now);
  if (certificate === null) {
    return (
      <Text span size="sm" c="dimmed" aria-label="no client certificate">
        –
      </Text>
    );
  }
  const { state, text } = expiryOf(certificate.not_after, now);
  return <State state={state} label={text} />;
}

function ExpiryAlert({ certificate: { not_after: end } }: { certificate: Certificate }) {
  const [now] = useState(Date.now);
  const { state, text } = expiryOf(end, now);
  if (state === "ok") return null;
  const title = state === "ended" ? "The client certificate has expired" : `The client certificate ${text}`;
  return (
    <Alert color={state === "ended" ? "red" : "yellow"} variant="light" icon={<IconCertificate />} title={title} mb="md">
      Replace it: servers refuse connections with an expired certificate.
    </Alert>
  );
}

type Tls = NonNullable<EndpointChange["tls"]>;

function CertificatesForm({ endpoint, ...form }: Editing) {
  const [texts, setTexts] = useState({ certificate: "", private_key: "", ca: "" });
  const { error } = form.change;
  const tls: Tls = Object.fromEntries(Object.entries(texts).filter(([, text]) => text.trim() !== ""));
  return (
    <SettingForm {...form} fields={["tls"]} ready={Object.keys(tls).length > 0} body={() => ({ tls })}>
      {endpoint.tls !== null && (
        <Alert color="yellow" variant="light">
          Saving replaces all certificates and keys: enter each one that is needed.
        </Alert>
      )}
      <Stack gap="md">
        {FIELDS.map(({ name, label, about }) => (
          <Textarea
            key={name}
            label={label}
            description={about}
            placeholder={`-----BEGIN ${name === "private_key" ? "PRIVATE KEY" : "CERTIFICATE"}-----`}
            autosize
            minRows={3}
            maxRows={10}
            spellCheck={false}
            autoComplete="off"
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12.5 } }}
            value={texts[name]}
            onChange={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })}
            error={errorAt(error, `tls.${name}`)}
          />
        ))}
      </Stack>
    </SettingForm>
  );
}
