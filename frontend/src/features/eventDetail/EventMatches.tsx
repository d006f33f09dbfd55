import { Alert, Anchor, Button, Collapse, Group, Stack, Text, Title, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconChevronRight } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "react-router";

import { pathIn } from "../../api/zone";
import { ExplainedRegistration } from "../explain/ExplainedDraft";
import { Conditions } from "../explain/Explained";
import { type Matches, readMatches } from "../explain/explain";
import { Outcome } from "../explain/Outcome";
import { Loading } from "../../parts/Loading";
import { ProblemAlert } from "../../parts/ProblemAlert";
import { visible, whole } from "../../parts/text";
import classes from "./EventMatches.module.css";

const NEAREST_MAX = 10; // of all parts together

interface Props {
  zone: string;
  stream: string;
  sequence: number;
}

type Version = Matches["matches"][number];
type Near = Matches["nearest"][number];

/** The registrations that an event matched or nearly matched; read when the button is pressed. */
export function EventMatches(props: Props) {
  const [requested, setRequested] = useState(false);
  return (
    <section aria-label="Registrations">
      <Title order={2} mb="xs">
        Registrations
      </Title>
      {requested ? (
        <Results {...props} />
      ) : (
        <Group gap="sm">
          <Button variant="default" size="compact-sm" onClick={() => setRequested(true)}>
            Show matching registrations
          </Button>
          <Text size="sm" c="dimmed">
            Includes near matches with the failed tests.
          </Text>
        </Group>
      )}
    </section>
  );
}

function Results({ zone, stream, sequence }: Props) {
  const found = useInfiniteQuery({
    queryKey: ["matches", zone, stream, sequence],
    queryFn: ({ pageParam }) => readMatches(zone, stream, sequence, pageParam),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    retry: false,
  });
  if (found.isError && found.data === undefined) return <ProblemAlert error={found.error} onRetry={() => void found.refetch()} />;
  if (found.data === undefined) return <Loading h={90} />;
  const { pages } = found.data;
  const evaluated = pages.reduce((sum, page) => sum + page.looked_at, 0);
  const matched = pages.reduce((sum, page) => sum + page.matched, 0);
  const shown = pages.flatMap((page) => page.matches);
  const nearest = best(pages.flatMap((page) => page.nearest));
  const explained = (one: Version) => <ExplainedRegistration zone={zone} id={one.id} stream={stream} sequence={sequence} />;
  return (
    <Stack gap="md">
      <Text size="sm" role="status">
        Matched: {whole(matched)} of {whole(evaluated)} evaluated {evaluated === 1 ? "registration" : "registrations"}.
        {shown.length < matched && ` The first ${whole(shown.length)} are shown.`}
      </Text>
      {shown.length > 0 && (
        <List label="Matched">
          {shown.map((one) => (
            <Row key={one.id} zone={zone} one={one} held words="matched" more={() => explained(one)} />
          ))}
        </List>
      )}
      {nearest.length > 0 && (
        <List label="Nearly matched">
          {nearest.map((one) => (
            <Row key={one.id} zone={zone} one={one} held={false} words={shortOf(one)} more={() => explained(one)}>
              <Failed near={one} />
            </Row>
          ))}
        </List>
      )}
      {found.isError && <ProblemAlert error={found.error} />}
      {found.hasNextPage && (
        <Alert color="yellow" variant="light" role="status">
          <Group justify="space-between">
            <Text size="sm">More registrations have not been evaluated yet.</Text>
            <Button size="compact-sm" variant="default" loading={found.isFetchingNextPage} onClick={() => void found.fetchNextPage()}>
              Evaluate more
            </Button>
          </Group>
        </Alert>
      )}
    </Stack>
  );
}

function List({ label, children }: { label: string; children: ReactNode }) {
  return (
    <section>
      <Title order={3} mb={6}>
        {label}
      </Title>
      <ul className={classes.list} aria-label={label}>
        {children}
      </ul>
    </section>
  );
}

interface RowProps {
  zone: string;
  one: Version;
  held: boolean;
  words: string;
  more: () => ReactNode; // the whole explanation
  children?: ReactNode; // shown without expanding the row
}

function Row({ zone, one: { id, client, version, current, group }, held, words, more, children }: RowProps) {
  const [open, { toggle }] = useDisclosure(false);
  const terms = [`of ${client}`, !current && `version ${version}`, group !== null && `group ${group}`].filter(Boolean).join(", ");
  return (
    <li className={classes.row}>
      <Outcome held={held} words={[words, words]}>
        <Anchor component={Link} to={`${pathIn(zone, "registrations")}?registration=${id}`} size="sm">
          Registration {id}
        </Anchor>{" "}
        <span className={classes.terms}>{terms}</span>
      </Outcome>
      {children}
      <UnstyledButton className={classes.more} aria-expanded={open} aria-label={`Explain registration ${id}`} onClick={toggle}>
        <IconChevronRight size={14} aria-hidden className={classes.chevron} /> Explain
      </UnstyledButton>
      <Collapse expanded={open}>{open && <div className={classes.all}>{more()}</div>}</Collapse>
    </li>
  );
}

function Failed({ near: { failed, against } }: { near: Near }) {
  return (
    <div className={classes.failed}>
      {failed.map(({ predicate, why }) => (
        <Outcome key={predicate} held={false} about={visible(why)}>
          <code className={classes.code}>{visible(predicate)}</code>
        </Outcome>
      ))}
      {against.length > 0 && <Conditions conditions={against} />}
    </div>
  );
}

function shortOf({ tests, failed, against }: Near): string {
  if (failed.length === 0) return `${whole(against.length)} against it`;
  return `failed ${whole(failed.length)} of ${whole(tests)}`;
}

/** Return the nearest of several parts, each of which has its own nearest. */
function best(nearest: readonly Near[]): Near[] {
  const distance = ({ failed, against }: Near) => failed.length + against.length;
  return [...nearest].sort((a, b) => distance(a) - distance(b)).slice(0, NEAREST_MAX);
}
