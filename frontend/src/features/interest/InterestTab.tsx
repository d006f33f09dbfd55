import { Grid, TagsInput } from "@mantine/core";
import { useState } from "react";

import type { Stream } from "../streams/streams";
import { InterestCheck } from "./InterestCheck";
import { InterestCard } from "./InterestCard";

/** The interest in a stream, as its producers receive it. */
export function InterestTab({ zone, stream }: { zone: string; stream: Stream }) {
  const [audience, setAudience] = useState<string[]>([]);
  return (
    <>
      <TagsInput
        label="Interest of clients in these groups"
        description="For events with an audience: count only registrations of its clients. Empty: all clients."
        placeholder={audience.length === 0 ? "all clients" : ""}
        value={audience}
        onChange={setAudience}
        maw={520}
        mb="md"
      />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <InterestCard zone={zone} stream={stream} audience={audience} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <InterestCheck zone={zone} stream={stream.name} audience={audience} />
        </Grid.Col>
      </Grid>
    </>
  );
}
