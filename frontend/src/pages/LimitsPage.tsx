import { useZone } from "../api/zone";
import { ChangeLimits } from "../features/limits/ChangeLimits";
import { LimitsTable } from "../features/limits/LimitsTable";
import { Card } from "../parts/Card";
import { PageHeader } from "../parts/PageHeader";

/** The limits of the zone as a whole, with their use. */
export function LimitsPage() {
  const zone = useZone();
  return (
    <>
      <PageHeader title="Limits" about="What all clients of the zone may use together. The limits of one client are on its page.">
        <ChangeLimits zone={zone} />
      </PageHeader>
      <Card title={`Zone ${zone}`}>
        <LimitsTable zone={zone} />
      </Card>
    </>
  );
}
