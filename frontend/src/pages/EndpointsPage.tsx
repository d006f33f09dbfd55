import { useState } from "react";

import { useZone } from "../api/zone";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { Side } from "../parts/Side";
import { EndpointDetail } from "../features/endpoints/EndpointDetail";
import { EndpointList } from "../features/endpoints/EndpointList";
import { NewEndpoint } from "../features/endpoints/NewEndpoint";

export function EndpointsPage() {
  const zone = useZone();
  const [shown, setShown] = useState<number>();
  const close = () => setShown(undefined);
  return (
    <>
      <PageHeader title="Endpoints" about="Callback URLs with their state and last attempt.">
        <New label="New endpoint">{(made) => <NewEndpoint zone={zone} onMade={made} />}</New>
      </PageHeader>
      <EndpointList zone={zone} onOpen={setShown} />
      <Side of={shown} title={(id) => `Endpoint ${id}`} size="md" onClose={close}>
        {(id) => <EndpointDetail key={id} zone={zone} id={id} onEnded={close} />}
      </Side>
    </>
  );
}
