import { useZone } from "../../api/zone";
import { Empty } from "../../parts/Empty";

export function FirstSteps() {
  const zone = useZone();
  return (
    <Empty
      title="No streams"
      about="A producer needs a key and a stream; then each POST appends an event. In a shell on the hub's machine:"
      command={`HUB=${location.origin}
KEY=$(.venv/bin/python manage.py createkey shop --zone ${zone} --grant 'manage:*' --grant 'emit:*' --grant 'listen:*')
curl -X PUT $HUB/v1/streams/orders -H "Authorization: Bearer $KEY" --json '{}'
curl $HUB/v1/streams/orders/events -H "Authorization: Bearer $KEY" \\
     --json '{"domain": "shop", "type": "order.placed", "attributes": {"total": 99}}'`}
    />
  );
}
