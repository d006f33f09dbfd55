import { EngineChoice } from "../jobs/EngineChoice";

const SEARCHES = {
  auto: { label: "Automatic", description: "The faster one: a process without Spark for little history." },
  local: { label: "One process", description: "Without Java; up to 512 MiB of events." },
  spark: { label: "Spark", description: "For any history, on as many cores as there are." },
};

interface Props {
  value: string;
  onChange: (engine: string) => void;
  error: unknown;
}

/** What searches the history. */
export function SearchChoice(props: Props) {
  return <EngineChoice label="Search by" engines={SEARCHES} {...props} />;
}
