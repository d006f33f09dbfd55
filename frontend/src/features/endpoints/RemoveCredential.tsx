import { Removal } from "../../parts/Removal";
import { useChangeEndpoint } from "./endpoints";
import type { Found } from "./Setting";

interface Props extends Found {
  kind: "authentication" | "tls";
  name: string; // `certificates`
}

/** The button that removes a credential of an endpoint, after a confirmation. */
export function RemoveCredential({ zone, found: { value, etag }, kind, name }: Props) {
  const change = useChangeEndpoint(zone, value.id, etag);
  return (
    <Removal
      label={`Remove the ${name}`}
      title={`Remove the ${name}?`}
      about={`Callbacks are sent without the ${name} from now on. The hub forgets the stored secret.`}
      action="Remove"
      removal={change}
      onConfirm={(close) => change.mutate({ [kind]: null }, { onSuccess: close })}
    />
  );
}
