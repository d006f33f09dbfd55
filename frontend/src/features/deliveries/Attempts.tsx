import { Collapse, Group, Text, Timeline, UnstyledButton } from "@mantine/core";
import { IconCheck, IconChevronDown, IconChevronRight, IconX } from "@tabler/icons-react";
import { useState } from "react";

import { outcomeOf } from "../endpoints/endpoints";
import { Moment } from "../../parts/Moment";
import { State } from "../../parts/State";
import { duration, visible, whole } from "../../parts/text";
import type { Attempt } from "./deliveries";
import classes from "./Attempts.module.css";

/** The attempts of a delivery as a timeline, newest first. Each expands to its request and response; the newest is expanded. */
export function Attempts({ attempts }: { attempts: Attempt[] }) {
  if (attempts.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        None yet.
      </Text>
    );
  }
  return (
    <Timeline bulletSize={22} lineWidth={2} className={classes.timeline}>
      {attempts.map((each, index) => (
        <Timeline.Item
          key={each.number}
          classNames={{ itemBullet: classes.bullet }}
          data-outcome={isGood(each) ? "good" : "bad"}
          bullet={isGood(each) ? <IconCheck size={13} aria-hidden /> : <IconX size={13} aria-hidden />}
        >
          <OneAttempt attempt={each} before={attempts[index + 1]} opened={index === 0} />
        </Timeline.Item>
      ))}
    </Timeline>
  );
}

interface OneProps {
  attempt: Attempt;
  before: Attempt | undefined; // the attempt before it
  opened: boolean;
}

function OneAttempt({ attempt, before, opened }: OneProps) {
  const [shown, setShown] = useState(opened);
  const Chevron = shown ? IconChevronDown : IconChevronRight;
  return (
    <>
      <UnstyledButton className={classes.control} aria-expanded={shown} onClick={() => setShown(!shown)}>
        <Group gap="sm">
          <Text fw={600} size="sm">
            Attempt {attempt.number}
          </Text>
          <State state={isGood(attempt) ? "delivered" : "failed"} label={outcomeOf(attempt)} />
          <Text size="sm" c="dimmed" className="number">
            <Moment at={attempt.at} />, {whole(attempt.duration_ms)} ms{before !== undefined && `, ${pauseText(before, attempt)}`}
          </Text>
          <Chevron size={16} aria-hidden />
        </Group>
      </UnstyledButton>
      <Collapse expanded={shown}>
        {shown && (
          <>
            <Part title={`Request to ${visible(attempt.url)}`} text={attempt.request} />
            <Part title="Response" text={attempt.response} />
          </>
        )}
      </Collapse>
    </>
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

function isGood({ outcome }: Attempt): boolean {
  return outcome === "delivered";
}

/** The time between two attempts: `5 minutes after attempt 2`. */
function pauseText(before: Attempt, { at }: Attempt): string {
  const seconds = Math.max(0, Math.round((Date.parse(at) - Date.parse(before.at)) / 1000));
  const unit = seconds >= 7_200 ? 3_600 : seconds >= 120 ? 60 : 1;
  return `${seconds === 0 ? "less than a second" : duration(Math.round(seconds / unit) * unit)} after attempt ${before.number}`;
}
