import { Alert, SimpleGrid, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";

import { useZone } from "../api/zone";
import { Chart } from "../parts/charts/Chart";
import { Card } from "../parts/Card";
import { Facts } from "../parts/Facts";
import { Figure } from "../parts/Figure";
import { Loading } from "../parts/Loading";
import { PageHeader } from "../parts/PageHeader";
import { ProblemAlert } from "../parts/ProblemAlert";
import { bytes, capital, whole } from "../parts/text";
import { ChangeQuota } from "../features/storage/ChangeQuota";
import { Share } from "../features/storage/Share";
import { type Readings, type Storage, storageOf } from "../features/storage/storage";
import { StreamSizes } from "../features/storage/StreamSizes";

/** What the hub's events take, and what they may. */
export function StoragePage() {
  const zone = useZone();
  const queries = useQueryClient();
  const { data, error, isError, refetch } = useQuery(storageOf(zone, queries));
  return (
    <>
      <PageHeader title="Storage" about="What events take on the disk, of the whole hub, and what they may.">
        {data !== undefined && <ChangeQuota zone={zone} quota={data.now.quota_bytes} />}
      </PageHeader>
      <Stack gap="md">
        {isError && data === undefined && <ProblemAlert error={error} onRetry={() => void refetch()} />}
        {data === undefined && !isError && <Loading h={420} />}
        {data !== undefined && <Content readings={data} />}
      </Stack>
    </>
  );
}

function Content({ readings: { now, history } }: { readings: Readings }) {
  return (
    <>
      <DiskAlert disk={now.disk} />
      <Figures storage={now} />
      <Card title="Used while this page is open">
        <Chart
          times={history.map(({ at }) => at)}
          values={history.map(({ used }) => used)}
          bounds={now.quota_bytes === null ? undefined : history.map(({ quota }) => quota)}
          format={bytes}
          scale="binary"
          label="Bytes used"
        />
      </Card>
      <StreamSizes storage={now} />
      {now.archive !== null && (
        <Card title="Archive">
          <div style={{ padding: "0 16px 16px" }}>
            <Facts facts={Object.entries(now.archive).map(([name, value]) => [capital(name.replaceAll("_", " ")), said(name, value)])} />
          </div>
        </Card>
      )}
    </>
  );
}

function Figures({ storage: { used_bytes: used, quota_bytes: quota, disk, partitions, streams } }: { storage: Storage }) {
  return (
    <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }} spacing="md">
      <Figure label="Used" value={bytes(used)} about={quota === null ? "of all that the disk gives" : <Share part={used} whole={quota} />} />
      <Figure
        label="Quota"
        value={quota === null ? "none" : bytes(quota)}
        about={quota === null ? "the disk alone is the limit" : "the oldest sealed segments go first"}
      />
      <Figure
        label="Disk"
        value={disk === null ? "not watched" : `${bytes(disk.free_bytes)} free`}
        about={disk === null ? "the hub does not know its disk" : <Share part={disk.total_bytes - disk.free_bytes} whole={disk.total_bytes} tone={disk.state} />}
      />
      <Figure label="Streams" value={whole(streams.length)} about={`in ${whole(partitions)} partitions`} />
    </SimpleGrid>
  );
}

function DiskAlert({ disk }: { disk: Storage["disk"] }) {
  if (disk === null || disk.state === "ok") return null;
  const full = disk.state === "full";
  return (
    <Alert color={full ? "red" : "yellow"} variant="light" icon={<IconAlertTriangle />} role="alert" data-reading title={full ? "The disk is full" : "The disk is nearly full"}>
      <Text size="sm">
        {full
          ? "Emits are refused with 507 until there is space again; nothing that was acknowledged is lost. Free space, or lower the quota."
          : "The oldest sealed segments are dropped before their time. Free space, lower the quota, or let streams keep less."}
      </Text>
    </Alert>
  );
}

function said(name: string, value: unknown): string {
  if (typeof value === "number") return name.endsWith("bytes") ? bytes(value) : whole(value);
  if (value === null || value === undefined) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
