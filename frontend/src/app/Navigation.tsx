import { Kbd, NavLink, Stack } from "@mantine/core";
import { IconBook2, IconExternalLink } from "@tabler/icons-react";
import { Link, useLocation } from "react-router";

import { pathIn } from "../api/zone";
import classes from "./Navigation.module.css";
import { PAGES } from "./pages";

export function Navigation({ zone }: { zone: string }) {
  const { pathname } = useLocation();
  return (
    <Stack component="nav" aria-label="Main" h="100%" gap={2} justify="space-between">
      <div>
        {PAGES.map((page) => {
          const to = pathIn(zone, page.path);
          const here = pathname === to;
          return (
            <NavLink
              key={page.path}
              component={Link}
              to={to}
              label={page.label}
              active={here}
              aria-current={here ? "page" : undefined}
              leftSection={<page.icon size={18} stroke={1.7} aria-hidden />}
              rightSection={
                <span className={classes.keys} aria-hidden>
                  <Kbd size="xs">g</Kbd> <Kbd size="xs">{page.key}</Kbd>
                </span>
              }
              className={classes.link}
            />
          );
        })}
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
