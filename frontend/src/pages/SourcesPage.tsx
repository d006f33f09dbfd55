import { NewSource } from "../features/sources/NewSource";
import { SourceDetail } from "../features/sources/SourceDetail";
import { type Source, useSources } from "../features/sources/sources";
import { SourceState } from "../features/sources/SourceState";
import type { Column } from "../parts/DataTable";
import { Empty } from "../parts/Empty";
import { Moment } from "../parts/Moment";
import { whole } from "../parts/text";
import { OwnedPage } from "./OwnedPage";

const COLUMNS: Column<Source>[] = [
  { title: "Source", cell: ({ name }) => name },
  { title: "State", cell: ({ enabled }) => <SourceState enabled={enabled} /> },
  { title: "Provider", cell: ({ provider }) => provider },
  { title: "Client", cell: ({ client }) => client },
  { title: "Stream", cell: ({ stream }) => stream },
  { title: "Last verified", cell: ({ verified_at: at }) => (at === null ? "–" : <Moment at={at} />) },
  { title: "Stored", cell: ({ requests }) => whole(requests.stored), right: true },
  { title: "Not verified", cell: ({ requests }) => whole(requests.refused), right: true },
];

/** Sources: webhooks of third parties. */
export function SourcesPage() {
  return (
    <OwnedPage
      kind="source"
      about="Secret URLs to which third parties post; the hub verifies their requests and maps them to events."
      useList={useSources}
      columns={COLUMNS}
      nameOf={({ name }) => name}
      minWidth={900}
      form={(zone, made) => <NewSource zone={zone} onMade={made} />}
      detail={(zone, id, deleted) => <SourceDetail key={id} zone={zone} id={id} onDeleted={deleted} />}
      empty={
        <Empty
          title="No sources"
          about="A source is a secret URL for the webhooks of GitHub, Stripe, Slack and others:"
          command={`curl ${location.origin}/v1/sources -H "Authorization: Bearer $KEY" \\
     --json '{"name": "github", "stream": "hooks", "provider": "github"}'`}
        />
      }
    />
  );
}
