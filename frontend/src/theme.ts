import { Alert, Combobox, createTheme, type CSSVariablesResolver, Drawer, Fieldset, type MantineColorsTuple, Modal } from "@mantine/core";

// the one accent
const iris: MantineColorsTuple = [
  "#eef0ff", "#dbdffb", "#b6bdf2", "#8e99e9", "#6e7be2",
  "#5a69de", "#4f5fdc", "#4050c4", "#3747b0", "#2a3b9c",
];
// a little warmer than Mantine's own greys, and darker, so that surfaces differ clearly
const dark: MantineColorsTuple = [
  "#d5d8e0", "#b3b8c4", "#949aa9", "#6b7283", "#434a5b",
  "#313746", "#242936", "#1b1f2a", "#151821", "#101219",
];

export const theme = createTheme({
  components: {
    Alert: Alert.extend({ styles: { title: { color: "var(--mantine-color-text)" } } }), // its own colour is hard to read
    Combobox: Combobox.extend({ defaultProps: { keepMounted: false } }), // 1,000 zones are no elements of a closed list
    Drawer: Drawer.extend({ styles: { title: { fontSize: "1.05rem", fontWeight: 650 } } }),
    Modal: Modal.extend({ styles: { title: { fontWeight: 650 } } }),
    Fieldset: Fieldset.extend({ styles: { legend: { fontWeight: 650 } } }),
  },
  colors: { iris, dark },
  primaryColor: "iris",
  primaryShade: { light: 7, dark: 5 },
  autoContrast: true,
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  fontFamily: 'Inter, ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: {
    fontWeight: "650",
    sizes: {
      h1: { fontSize: "1.5rem", lineHeight: "1.3" },
      h2: { fontSize: "1.05rem", lineHeight: "1.4" },
      h3: { fontSize: "0.9rem", lineHeight: "1.4" },
    },
  },
});

/** Texts that are quieter than others, and links, still with a contrast of 4.5 on every surface. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#5b6273",
    "--mantine-color-placeholder": "#667085",
    "--mantine-color-error": "#c92a2a",
  },
  dark: {
    "--mantine-color-dimmed": "#a3a9b8",
    "--mantine-color-placeholder": "#949aa9",
    "--mantine-color-anchor": "#a5aff3",
    "--mantine-color-error": "#ff8787",
  },
});
