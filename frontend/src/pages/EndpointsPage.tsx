import { useNavigate } from "react-router";

import { pathIn, useZone } from "../api/zone";
import { New } from "../parts/New";
import { PageHeader } from "../parts/PageHeader";
import { EndpointList } from "../features/endpoints/EndpointList";
import { endpointPath } from "../features/endpoints/endpoints";
import { NewEndpoint } from "../features/endpoints/NewEndpoint";

export function EndpointsPage() {
  const zone = useZone();
  const navigate = useNavigate();
  return (
    <>
      <PageHeader title="Endpoints" about="Callback URLs with their state and last attempt.">
        <New label="New endpoint">{(made) => <NewEndpoint zone={zone} onMade={made} />}</New>
      </PageHeader>
      <EndpointList zone={zone} onOpen={(id) => void navigate(pathIn(zone, endpointPath(id)))} />
    </>
  );
}
