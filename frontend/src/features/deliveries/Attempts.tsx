import { Accordion, Group, Text } from "@mantine/core";

import { outcomeOf } from "../endpoints/endpoints";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { visible, whole } from "../../parts/text";
import type { Attempt } from "./deliveries";
import classes from "./Attempts.module.css";

/** The attempts of a delivery with request and response, newest first; the newest is expanded. */
export function Attempts({ attempts }: { attempts: Attempt[] }) {
  const newest = attempts[0];
  if (newest === undefined) {
    return (
      <Text size="sm" c="dimmed">
        None yet.
      </Text>
    );
  }
  return (
    <Accordion variant="contained" defaultValue={String(newest.number)}>
      {attempts.map((each) => (
        <Accordion.Item key={each.number} value={String(each.number)}>
          <Accordion.Control>
            <Group gap="sm">
              <Text fw={600} size="sm">
                Attempt {each.number}
              </Text>
              <State state={each.outcome === "delivered" ? "delivered" : "failed"} label={outcomeOf(each)} />
              <Text size="sm" c="dimmed" className="number">
                <Moment at={each.at} />, {whole(each.duration_ms)} ms
              </Text>
            </Group>
          </Accordion.Control>
          <Accordion.Panel>
            <Part title={`Request to ${visible(each.url)}`} text={each.request} />
            <Part title="Response" text={each.response} />
          </Accordion.Panel>
        </Accordion.Item>
      ))}
    </Accordion>
  );
}

function Part({ title, text }: { title: string; text: string }) {
  return (
    <section className={classes.part}>
      <Text size="xs" c="dimmed" fw={600} className={classes.title}>
        {title}
      </Text>
      <pre className={`verbatim ${classes.text}`} tabIndex={0} aria-label={title}>
        {text === "" ? "nothing" : visible(text)}
      </pre>
    </section>
  );
}
