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

/** Bytes of the hub's events, its quota, disk and archive. */
export function StoragePage() {
  const zone = useZone();
  const queries = useQueryClient();
  const { data, error, isError, refetch } = useQuery(storageOf(zone, queries));
  return (
    <>
      <PageHeader title="Storage" about="Bytes of events of the whole hub, quota, disk and archive.">
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
      <Figure label="Used" value={bytes(used)} about={quota === null ? "no quota" : <Share part={used} whole={quota} />} />
      <Figure
        label="Quota"
        value={quota === null ? "none" : bytes(quota)}
        about={quota === null ? "limited by the disk" : "the oldest sealed segments are dropped first"}
      />
      <Figure
        label="Disk"
        value={disk === null ? "not watched" : `${bytes(disk.free_bytes)} free`}
        about={disk === null ? "unknown" : <Share part={disk.total_bytes - disk.free_bytes} whole={disk.total_bytes} tone={disk.state} />}
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
          : "The oldest sealed segments are dropped before their retention ends. Free space, lower the quota, or shorten the retention of streams."}
      </Text>
    </Alert>
  );
}

function said(name: string, value: unknown): string {
  if (typeof value === "number") return name.endsWith("bytes") ? bytes(value) : whole(value);
  if (value === null || value === undefined) return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
