import { Anchor, Table, Text } from "@mantine/core";
import { Link } from "react-router";

import { pathIn } from "../api/zone";
import { Card } from "../parts/Card";
import { rate, whole } from "../parts/numbers";
import { type Readings, streamRate } from "./readings";

/** Each stream: how far it is, how fast it grows, and how far it is matched for callbacks. */
export function StreamTable({ zone, readings }: { zone: string; readings: Readings }) {
  return (
    <Card title="Streams">
      <Table.ScrollContainer minWidth={520} scrollAreaProps={{ viewportProps: { tabIndex: 0, "aria-label": "Streams" } }}>
        <Table verticalSpacing="xs" horizontalSpacing="md" className="number">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Stream</Table.Th>
              <Table.Th ta="right">Last sequence</Table.Th>
              <Table.Th ta="right">Per second</Table.Th>
              <Table.Th ta="right">Matched to</Table.Th>
              <Table.Th ta="right">Not matched yet</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {readings.now.streams.map((stream) => (
              <Table.Tr key={stream.name}>
                <Table.Td>
                  <Anchor
                    component={Link}
                    to={`${pathIn(zone, "live")}?stream=${encodeURIComponent(stream.name)}`}
                    size="sm"
                    fw={500}
                  >
                    {stream.name}
                  </Anchor>
                </Table.Td>
                <Table.Td ta="right">{whole(stream.last)}</Table.Td>
                <Table.Td ta="right">{orNothing(streamRate(readings, stream.name), rate)}</Table.Td>
                <Table.Td ta="right">{orNothing(stream.matched, whole)}</Table.Td>
                <Table.Td ta="right">{orNothing(stream.lag, whole)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Card>
  );
}

function orNothing(value: number | null, format: (value: number) => string) {
  return value === null ? (
    <Text span c="dimmed" aria-label="none">
      –
    </Text>
  ) : (
    format(value)
  );
}
