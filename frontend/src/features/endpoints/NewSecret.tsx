import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconKey } from "@tabler/icons-react";
import { useState } from "react";

import { Confirm } from "../../parts/Confirm";
import { type Secret, SecretOnce } from "../../parts/SecretOnce";
import { secretOf, useRotateSecret } from "./endpoints";

/** The button that replaces an endpoint's secret, after a confirmation. */
export function NewSecret({ zone, id }: { zone: string; id: number }) {
  const [asking, { open, close }] = useDisclosure(false);
  const [secret, setSecret] = useState<Secret>();
  const rotate = useRotateSecret(zone, id);
  return (
    <>
      <Button
        variant="default"
        leftSection={<IconKey size={16} />}
        onClick={() => {
          rotate.reset();
          open();
        }}
      >
        New secret
      </Button>
      <Confirm
        opened={asking}
        title={`Replace the secret of endpoint ${id}?`}
        about="The present secret signs too for a day, so that the receiver can be changed meanwhile."
        action="Replace"
        busy={rotate.isPending}
        error={rotate.error}
        onConfirm={() =>
          rotate.mutate(undefined, {
            onSuccess: ({ secret: text }) => {
              close();
              setSecret(secretOf(text ?? ""));
            },
          })
        }
        onClose={close}
      />
      <SecretOnce secret={secret} onClose={() => setSecret(undefined)} />
    </>
  );
}
