import { Alert, Progress, Stack, Text } from "@mantine/core";

import { duration, whole } from "../../parts/text";
import type { Build } from "./matchIndex";

const PATIENCE_MS = 30_000; // workers poll every few seconds
const READ = "read"; // the stage that counts what is expected
const STAGES: Record<string, string> = {
  begun: "Begun",
  read: "Registrations read",
  assembled: "Entries sorted",
  written: "Entries written",
  sealed: "Entries on the disk",
  published: "Entries published",
  cleaned: "Entries published",
};
const HUNDREDTHS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

/** The progress of the current build, or the outcome of the last one. */
export function BuildState({ build }: { build: Build | null }) {
  return (
    <div role="status" aria-label="Build">
      {build !== null && <Said build={build} />}
    </div>
  );
}

function Said({ build }: { build: Build }) {
  switch (build.state) {
    case "waiting":
      return <Words text={waited(build) > PATIENCE_MS ? "No worker has started the build. Another build may be running, or no worker is." : "A worker starts the build within seconds."} />;
    case "building":
      return <Running build={build} />;
    case "interrupted":
      return <Words text="The last build was interrupted. The previous index remains in use, and a worker will retry." />;
    case "failed":
      return (
        <Alert color="red" variant="light" title="The last build failed">
          <Text size="sm">{build.detail}</Text>
          <Text size="xs" c="dimmed" className="mono">
            {build.reason}
          </Text>
        </Alert>
      );
    case "built":
      return <Words text={`The last build took ${taken(build)}.`} />;
  }
}

function Running({ build: { stage, done, expected } }: { build: Build }) {
  const share = stage !== READ || expected === null || expected === 0 ? undefined : Math.min(100, Math.round((100 * done) / expected));
  return (
    <Stack gap={6} maw={520}>
      <Progress value={share ?? 100} animated={share === undefined} aria-label="Progress of the build" />
      <Text size="sm" c="dimmed" className="number">
        {STAGES[stage] ?? stage}: {whole(done)}
        {share !== undefined && expected !== null && expected >= done && ` of about ${whole(expected)}`}
      </Text>
    </Stack>
  );
}

function Words({ text }: { text: string }) {
  return (
    <Text size="sm" c="dimmed">
      {text}
    </Text>
  );
}

function waited({ requested_at: requested }: Build): number {
  return requested === null ? 0 : Date.now() - Date.parse(requested);
}

function taken({ started_at: begun, ended_at: ended }: Build): string {
  if (begun === null || ended === null) return "some time";
  const seconds = (Date.parse(ended) - Date.parse(begun)) / 1000;
  if (seconds < 1) return "less than a second";
  return seconds < 60 ? `${HUNDREDTHS.format(seconds)} seconds` : duration(Math.round(seconds));
}
