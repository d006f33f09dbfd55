import { useQuery } from "@tanstack/react-query";
import { Link } from "react-router";

import { api, done } from "../api/client";
import { pathIn } from "../api/zone";
import { State } from "../parts/State";

const INTERVAL_MS = 5_000;

/** A badge on every page while a component does not work, with a link to the reason. */
export function HubState({ zone }: { zone: string }) {
  const { data } = useQuery({
    queryKey: ["readyz"],
    queryFn: () => done(api.GET("/readyz")),
    refetchInterval: INTERVAL_MS,
  });
  if (data === undefined || data.status === "ready") return null;
  return (
    <Link to={pathIn(zone, "overview")} style={{ textDecoration: "none", flex: "none" }} aria-label={`The hub is ${data.status}: show why`}>
      <State state={data.status} />
    </Link>
  );
}
