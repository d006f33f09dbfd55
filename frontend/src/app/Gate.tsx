import { Center, Loader } from "@mantine/core";

import { useSession } from "../api/session";
import { ProblemAlert } from "../parts/ProblemAlert";
import { Shell } from "./Shell";
import { SignIn } from "./SignIn";

/** The console for a logged-in operator, otherwise the sign-in page. */
export function Gate() {
  const session = useSession();
  if (session.isPending) {
    return (
      <Center h="100vh">
        <Loader role="status" aria-label="Loading" />
      </Center>
    );
  }
  if (session.data === undefined) {
    return (
      <Center h="100vh" p="lg">
        <ProblemAlert error={session.error} onRetry={() => void session.refetch()} />
      </Center>
    );
  }
  return session.data === null ? <SignIn /> : <Shell username={session.data.username} />;
}
