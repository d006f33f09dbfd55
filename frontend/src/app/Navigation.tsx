import { Kbd, NavLink, Stack } from "@mantine/core";
import { IconBook2, IconExternalLink } from "@tabler/icons-react";
import { Link, useLocation } from "react-router";

import { includes, useRole } from "../api/session";
import { pathIn } from "../api/zone";
import classes from "./Navigation.module.css";
import { GROUPS, type Page } from "./pages";

export function Navigation({ zone }: { zone: string }) {
  const role = useRole();
  return (
    <Stack component="nav" aria-label="Main" h="100%" gap={2} justify="space-between">
      <div>
        {GROUPS.map((group) => (
          <div key={group.label} role="group" aria-label={group.label} className={classes.group}>
            <div className={classes.title} aria-hidden>
              {group.label}
            </div>
            {group.pages
              .filter((page) => includes(role, page.role ?? "viewer"))
              .map((page) => (
                <PageLink key={page.path} page={page} zone={zone} />
              ))}
          </div>
        ))}
      </div>
      <NavLink
        href="/docs/api"
        target="_blank"
        label="API reference"
        leftSection={<IconBook2 size={18} stroke={1.7} aria-hidden />}
        rightSection={<IconExternalLink size={14} stroke={1.7} aria-hidden />}
        className={classes.link}
      />
    </Stack>
  );
}

function PageLink({ page, zone }: { page: Page; zone: string }) {
  const { pathname } = useLocation();
  const to = pathIn(zone, page.path);
  const within = pathname === to || pathname.startsWith(`${to}/`);
  return (
    <NavLink
      component={Link}
      to={to}
      label={page.label}
      active={within}
      aria-current={pathname === to ? "page" : within || undefined}
      leftSection={<page.icon size={18} stroke={1.7} aria-hidden />}
      rightSection={
        <span className={classes.keys} aria-hidden>
          <Kbd size="xs">g</Kbd> <Kbd size="xs">{page.key}</Kbd>
        </span>
      }
      className={classes.link}
    />
  );
}
