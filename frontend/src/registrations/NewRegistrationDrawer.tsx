import { Drawer } from "@mantine/core";

import { useClients } from "../clients/clients";
import { useStreams } from "../streams/useStreams";
import { RegistrationForm } from "./RegistrationForm";
import { useCreateRegistration } from "./registrations";

interface Props {
  zone: string;
  opened: boolean;
  onClose: () => void;
  onMade: (secret: string | undefined) => void;
}

export function NewRegistrationDrawer({ zone, opened, onClose, onMade }: Props) {
  const clients = useClients(zone);
  const streams = useStreams(zone);
  const create = useCreateRegistration(zone, clients.data ?? []);
  return (
    <Drawer
      opened={opened}
      onClose={() => {
        create.reset();
        onClose();
      }}
      position="right"
      size="lg"
      title="New registration"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <RegistrationForm
        zone={zone}
        clients={clients.data ?? []}
        streams={streams.data ?? []}
        error={create.error}
        busy={create.isPending}
        onSubmit={(body) => create.mutate(body, { onSuccess: onMade })}
      />
    </Drawer>
  );
}
