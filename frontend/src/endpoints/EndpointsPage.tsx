import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconPlus } from "@tabler/icons-react";
import { useState } from "react";

import { useZone } from "../api/zone";
import { PageHeader } from "../parts/PageHeader";
import { SecretOnce } from "../parts/SecretOnce";
import { EndpointDrawer } from "./EndpointDrawer";
import { EndpointList } from "./EndpointList";
import type { Endpoint } from "./endpoints";
import { NewEndpointDrawer } from "./NewEndpointDrawer";

export function EndpointsPage() {
  const zone = useZone();
  const [creating, { open, close }] = useDisclosure(false);
  const [shown, setShown] = useState<Endpoint>();
  const [secret, setSecret] = useState<string>();

  return (
    <>
      <PageHeader title="Endpoints" about="Where the hub calls back, and whether it may.">
        <Button leftSection={<IconPlus size={16} />} onClick={open}>
          New endpoint
        </Button>
      </PageHeader>
      <EndpointList zone={zone} onOpen={setShown} />
      <NewEndpointDrawer
        zone={zone}
        opened={creating}
        onClose={close}
        onMade={(made) => {
          close();
          setSecret(made);
        }}
      />
      <EndpointDrawer zone={zone} endpoint={shown} onClose={() => setShown(undefined)} />
      <SecretOnce secret={secret} onClose={() => setSecret(undefined)} />
    </>
  );
}
