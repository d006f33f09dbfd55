import { Button, Group, Stack } from "@mantine/core";
import { IconPassword, IconUserCheck, IconUserOff } from "@tabler/icons-react";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";

import { Confirm } from "../../parts/Confirm";
import { Facts } from "../../parts/Facts";
import { Form } from "../../parts/Form";
import { Moment } from "../../parts/Moment";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { Removal } from "../../parts/Removal";
import { type Secret, SecretOnce } from "../../parts/SecretOnce";
import { RoleInput, tokenOf } from "./OperatorForm";
import { type Operator, useChangeOperator, useDeleteOperator, useSetupToken } from "./operators";

/** One operator with its role and what an admin may do with it. */
export function OperatorDetail({ operator, onDeleted }: { operator: Operator; onDeleted: () => void }) {
  const { name, active } = operator;
  const change = useChangeOperator(name);
  const activity = useChangeOperator(name);
  const remove = useDeleteOperator(name);
  const [role, setRole] = useState(operator.role);
  return (
    <Stack gap="lg">
      <Facts
        facts={[
          ["Created", <Moment key="created" at={operator.created_at} />],
          ["Last login", operator.last_login_at === null ? "never" : <Moment key="login" at={operator.last_login_at} />],
          ["Password", operator.has_password ? "set" : "not set: waiting for the set-up token"],
        ]}
      />
      <Form
        fields={["role"]}
        error={change.error}
        busy={change.isPending}
        action="Save"
        role="admin"
        ready={role !== operator.role}
        onSubmit={() => change.mutate({ role })}
      >
        <RoleInput value={role} onChange={setRole} />
      </Form>
      {activity.isError && <ProblemAlert error={activity.error} />}
      <Group gap="xs">
        <Button
          variant="default"
          loading={activity.isPending}
          leftSection={active ? <IconUserOff size={16} /> : <IconUserCheck size={16} />}
          onClick={() => activity.mutate({ active: !active })}
        >
          {active ? "Deactivate" : "Activate"}
        </Button>
        <ResetPassword name={name} />
        <Removal
          title={`Delete the operator ${name}?`}
          about="Its sessions end at once. To keep the account, deactivate it instead."
          removal={remove}
          onConfirm={() => remove.mutate(undefined, { onSuccess: onDeleted })}
        />
      </Group>
    </Stack>
  );
}

function ResetPassword({ name }: { name: string }) {
  const [asking, { open, close }] = useDisclosure(false);
  const [secret, setSecret] = useState<Secret>();
  const issue = useSetupToken(name);
  return (
    <>
      <Button variant="default" leftSection={<IconPassword size={16} />} onClick={open}>
        Reset the password
      </Button>
      <Confirm
        opened={asking}
        title={`Reset the password of ${name}?`}
        about="Its password and its sessions end at once. You get a token with which a new password is set, once."
        action="Reset the password"
        busy={issue.isPending}
        error={issue.error}
        onConfirm={() =>
          issue.mutate(undefined, {
            onSuccess: ({ setup_token: token }) => {
              close();
              setSecret(tokenOf(name, token));
            },
          })
        }
        onClose={close}
      />
      <SecretOnce secret={secret} onClose={() => setSecret(undefined)} />
    </>
  );
}
