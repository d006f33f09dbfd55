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
 * The client of a new object: initially empty, so that the choice is explicit. An unknown name is offered as a new
 * client by a separate button; the form itself never creates one.
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
