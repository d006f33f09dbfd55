import {
  IconActivity,
  IconAlarm,
  IconApps,
  IconBraces,
  IconBroadcast,
  IconClockPlay,
  IconDatabase,
  IconDatabaseImport,
  IconFilter,
  IconFolders,
  IconGauge,
  IconHistory,
  IconKey,
  IconListSearch,
  IconMailOff,
  IconPlugConnected,
  IconRepeat,
  IconRoute,
  IconSend,
  IconStack2,
  IconTags,
  IconTimeline,
  IconUsersGroup,
  IconUsers,
  IconWebhook,
  IconWorldDownload,
  type TablerIcon,
} from "@tabler/icons-react";

import type { Role } from "../api/session";

export interface Page {
  path: string;
  label: string;
  icon: TablerIcon;
  key: string; // after `g`
  role?: Role; // that an operator needs
}

/** The console's pages, in groups. */
export const GROUPS: readonly { label: string; pages: readonly Page[] }[] = [
  {
    label: "Events",
    pages: [
      { path: "overview", label: "Overview", icon: IconActivity, key: "o" },
      { path: "live", label: "Live events", icon: IconBroadcast, key: "l" },
      { path: "streams", label: "Streams", icon: IconStack2, key: "s" },
      { path: "types", label: "Types", icon: IconBraces, key: "t" },
      { path: "applications", label: "Applications", icon: IconApps, key: "a" },
      { path: "sources", label: "Sources", icon: IconWorldDownload, key: "k" },
      { path: "connectors", label: "Connectors", icon: IconDatabaseImport, key: "g" },
      { path: "timers", label: "Timers", icon: IconAlarm, key: "i" },
      { path: "channels", label: "Channels", icon: IconTags, key: "h" },
    ],
  },
  {
    label: "Interest",
    pages: [
      { path: "filters", label: "Filters", icon: IconFilter, key: "f" },
      { path: "registrations", label: "Registrations", icon: IconListSearch, key: "r" },
      { path: "patterns", label: "Patterns", icon: IconTimeline, key: "v" },
      { path: "sessions", label: "Sessions", icon: IconPlugConnected, key: "n" },
      { path: "groups", label: "Groups", icon: IconFolders, key: "p" },
    ],
  },
  {
    label: "Callbacks",
    pages: [
      { path: "endpoints", label: "Endpoints", icon: IconWebhook, key: "e" },
      { path: "deliveries", label: "Deliveries", icon: IconSend, key: "d" },
      { path: "dead-letters", label: "Dead letters", icon: IconMailOff, key: "x" },
      { path: "replays", label: "Replays", icon: IconRepeat, key: "y" },
    ],
  },
  {
    label: "Hub",
    pages: [
      { path: "clients", label: "Clients", icon: IconKey, key: "c" },
      { path: "limits", label: "Limits", icon: IconGauge, key: "m" },
      { path: "storage", label: "Storage", icon: IconDatabase, key: "q" },
      { path: "members", label: "Members", icon: IconUsersGroup, key: "b" },
      { path: "traces", label: "Traces", icon: IconRoute, key: "z" },
      { path: "jobs", label: "Jobs", icon: IconClockPlay, key: "j" },
      { path: "audit-trail", label: "Audit trail", icon: IconHistory, key: "u" },
      { path: "operators", label: "Operators", icon: IconUsers, key: "w", role: "admin" },
    ],
  },
];

export const PAGES: readonly Page[] = GROUPS.flatMap((group) => group.pages);
