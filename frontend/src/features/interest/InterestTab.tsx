import { Grid, TagsInput } from "@mantine/core";
import { useState } from "react";

import type { Stream } from "../streams/streams";
import { Asking } from "./Asking";
import { Wanted } from "./Wanted";

/** What is wanted of a stream, as its producers are told. */
export function InterestTab({ zone, stream }: { zone: string; stream: Stream }) {
  const [audience, setAudience] = useState<string[]>([]);
  return (
    <>
      <TagsInput
        label="Wanted by clients of these groups"
        description="For events with an audience: only what its clients want counts. Empty: everybody."
        placeholder={audience.length === 0 ? "everybody" : ""}
        value={audience}
        onChange={setAudience}
        maw={520}
        mb="md"
      />
      <Grid gap="md">
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Wanted zone={zone} stream={stream} audience={audience} />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Asking zone={zone} stream={stream.name} audience={audience} />
        </Grid.Col>
      </Grid>
    </>
  );
}
