import { Autocomplete, Button, Group, Text } from "@mantine/core";
import { useRef } from "react";

import { errorAt } from "../../api/problem";
import { useClientNames, useCreateClient } from "./clients";

interface Props {
  zone: string;
  value: string;
  onChange: (name: string) => void;
  error?: string;
}

/**
 * Whose it shall be: nobody's to begin with, so that the choice is made. A name that no client has is offered as a new
 * one, by a button of its own; nothing makes a client on the way.
 */
export function ClientInput({ zone, value, onChange, error }: Props) {
  const clients = useClientNames(zone).data;
  const create = useCreateClient(zone);
  const input = useRef<HTMLInputElement>(null);
  const isUnknown = clients?.whole === true && value !== "" && !clients.names.includes(value);
  return (
    <div>
      <Autocomplete
        ref={input}
        label="Client"
        description="The client that owns it."
        placeholder="Choose a client"
        data={clients?.names ?? []}
        value={value}
        onChange={onChange}
        error={error ?? errorAt(create.error, "name") ?? (create.error === null ? undefined : create.error.message)}
        required
        withAsterisk={false}
      />
      <Group gap="xs" mt={6} role="status">
        {isUnknown && (
          <>
            <Text size="sm">There is no client of this name.</Text>
            <Button
              variant="default"
              size="compact-sm"
              loading={create.isPending}
              onClick={() => create.mutate({ name: value, groups: [] }, { onSuccess: () => input.current?.focus() })}
            >
              Create the client {value}
            </Button>
          </>
        )}
        {create.data?.name === value && !isUnknown && <Text size="sm">The client {value} was created.</Text>}
      </Group>
    </div>
  );
}
