import { Card } from "../../parts/Card";
import { Facts } from "../../parts/Facts";
import { Judgement } from "./Judgement";
import type { ResultProps } from "./types";
import { named, valued } from "./words";

/** The result of a run as a list of facts. */
export function PlainResult({ run }: ResultProps) {
  const facts = Object.entries(run.details).filter(([, value]) => typeof value !== "object");
  return (
    <>
      <Judgement run={run} />
      {facts.length > 0 && (
        <Card title="Result">
          <div style={{ padding: "0 16px 16px" }}>
            <Facts facts={facts.map(([name, value]) => [named(name), valued(name, value)])} />
          </div>
        </Card>
      )}
    </>
  );
}
