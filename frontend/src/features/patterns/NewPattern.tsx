import { Select, Stack, Switch, TextInput } from "@mantine/core";
import { useState } from "react";

import { errorAt } from "../../api/problem";
import { Form } from "../../parts/Form";
import { ClientInput } from "../clients/ClientInput";
import { PatternBench } from "./PatternBench";
import { PatternEditor } from "./PatternEditor";
import { type Language, useCreatePattern, usePatternGroupNames } from "./patterns";

/** Creates a pattern in a group of a client; it may be tried before. */
export function NewPattern({ zone, onMade }: { zone: string; onMade: (id: number) => void }) {
  const create = useCreatePattern(zone);
  const [client, setClient] = useState("");
  const [group, setGroup] = useState<string>();
  const [name, setName] = useState("");
  const [language, setLanguage] = useState<Language>("ready");
  const [text, setText] = useState("");
  const [once, setOnce] = useState(false);
  const found = usePatternGroupNames(zone, client).data;
  const groups = found ?? [];
  const isAgent = language === "agent"; // it runs until it is suspended
  return (
    <Stack gap="xl">
      <Form
        fields={["client", "group", "name", "text", "once"]}
        error={create.error}
        busy={create.isPending}
        action="Create"
        ready={client !== "" && group !== undefined && name !== "" && text.trim() !== ""}
        onSubmit={() => group !== undefined && create.mutate({ client, group, name, language, text, once: once && !isAgent }, { onSuccess: ({ id }) => onMade(id) })}
      >
        <ClientInput zone={zone} value={client} onChange={setClient} error={errorAt(create.error, "client")} />
        <Select
          label="Pattern group"
          description="It has the streams whose events the pattern sees."
          placeholder={found?.length === 0 ? "The client has none: create a pattern group first" : "Choose a group"}
          data={groups}
          value={group ?? null}
          onChange={(next) => setGroup(next ?? undefined)}
          nothingFoundMessage="The client has no such group"
          searchable
          error={errorAt(create.error, "group")}
        />
        <TextInput
          label="Name"
          description="Unique in the group."
          placeholder="guessed-password"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={errorAt(create.error, "name")}
        />
        <PatternEditor zone={zone} language={language} text={text} onLanguage={setLanguage} onChange={setText} error={errorAt(create.error, "text")} />
        {!isAgent && (
          <Switch
            label="Once"
            description="It ends with its first match."
            checked={once}
            onChange={(event) => setOnce(event.currentTarget.checked)}
            error={errorAt(create.error, "once")}
          />
        )}
      </Form>
      <PatternBench zone={zone} language={language} text={text} once={once && !isAgent} />
    </Stack>
  );
}
