import { Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { Card } from "../../parts/Card";
import { Loading } from "../../parts/Loading";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { visible } from "../../parts/text";
import { logOf } from "./jobs";
import classes from "./RunLog.module.css";
import type { Run } from "./types";

const AT_END_PX = 24;

/** The end of a run's log; expanded if the run failed. */
export function RunLog({ run }: { run: Run }) {
  const [open, setOpen] = useState(run.state !== "completed");
  const toggle = (
    <Button size="compact-sm" variant="default" aria-expanded={open} onClick={() => setOpen(!open)}>
      {open ? "Hide the log" : "Show the log"}
    </Button>
  );
  return (
    <Card title="Log" aside={toggle}>
      <div className={classes.frame}>{open && <Tail run={run} />}</div>
    </Card>
  );
}

function Tail({ run }: { run: Run }) {
  const { data, error, isError, refetch } = useQuery(logOf(run));
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (follows.current) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [data]);
  if (isError && data === undefined) return <ProblemAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading h={160} />;
  if (data === "") {
    return (
      <Text size="sm" c="dimmed">
        Nothing yet.
      </Text>
    );
  }
  const scrolled = ({ currentTarget: { scrollHeight, scrollTop, clientHeight } }: { currentTarget: HTMLElement }) => {
    follows.current = scrollHeight - scrollTop - clientHeight < AT_END_PX;
  };
  return (
    <pre ref={box} className={`verbatim ${classes.text}`} tabIndex={0} aria-label="The end of the log" onScroll={scrolled}>
      {visible(data)}
    </pre>
  );
}
