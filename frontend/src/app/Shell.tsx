import { AppShell, Burger, Group } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useEffect } from "react";
import { Link, Outlet, useLocation } from "react-router";

import { pathIn, useZone } from "../api/zone";
import { Brand } from "./Brand";
import { ColorScheme } from "./ColorScheme";
import { useStaleness } from "./freshness";
import { HubState } from "./HubState";
import { keepZone } from "./lastZone";
import { Navigation } from "./Navigation";
import classes from "./Shell.module.css";
import { Shortcuts } from "./Shortcuts";
import { Stale } from "./Stale";
import { UserMenu } from "./UserMenu";
import { ZoneSelect } from "./ZoneSelect";

export function Shell({ username }: { username: string }) {
  const zone = useZone();
  const { pathname } = useLocation();
  const [open, { toggle, close }] = useDisclosure(false);
  const stale = useStaleness();
  useEffect(() => keepZone(zone), [zone]);
  useEffect(() => {
    document.documentElement.toggleAttribute("data-stale", stale !== undefined); // also for what opens at the side
  }, [stale]);
  useEffect(close, [close, pathname]);

  return (
    <AppShell header={{ height: 56 }} navbar={{ width: 224, breakpoint: "sm", collapsed: { mobile: !open } }}>
      <a className={classes.skip} href="#content">
        Skip to the content
      </a>
      <AppShell.Header className={classes.bar}>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap" flex="none">
            <Burger
              opened={open}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={open ? "Hide the navigation" : "Show the navigation"}
            />
            <Link to={pathIn(zone, "overview")} className={classes.brand} aria-label="EventHub, to the overview">
              <Brand />
            </Link>
          </Group>
          <Group gap="xs" wrap="nowrap" miw={0}>
            <HubState zone={zone} />
            <ZoneSelect zone={zone} />
            <ColorScheme />
            <UserMenu username={username} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={`${classes.bar} ${classes.navigation}`} p="sm">
        <Navigation zone={zone} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1} className={classes.main}>
        <div className={classes.page}>
          {stale !== undefined && <Stale stale={stale} />}
          <div key={zone}>
            <Outlet />
          </div>
        </div>
      </AppShell.Main>
      <Shortcuts zone={zone} />
    </AppShell>
  );
}
