import { Table, UnstyledButton } from "@mantine/core";
import type { ReactNode } from "react";

import classes from "./DataTable.module.css";

export interface Column<T> {
  title: string;
  cell: (item: T) => ReactNode;
  right?: boolean; // numbers
  width?: number; // at most, in pixels
}

interface Props<T> {
  label: string;
  items: readonly T[];
  columns: readonly Column<T>[];
  keyOf: (item: T) => string;
  nameOf?: (item: T) => string; // accessible name of the row's button
  onOpen?: (item: T) => void; // the first column opens the item
  markedOf?: (item: T) => boolean; // stands out
  minWidth?: number;
}

/** A table that scrolls by itself when it is wider than the page. */
export function DataTable<T>({ label, items, columns, keyOf, nameOf, onOpen, markedOf, minWidth = 640 }: Props<T>) {
  return (
    <Table.ScrollContainer type="native" minWidth={minWidth} tabIndex={0} role="region" aria-label={`${label}, table`}>
      <Table className={classes.table} verticalSpacing={9} horizontalSpacing="md" aria-label={label}>
        <Table.Thead>
          <Table.Tr>
            {columns.map((column) => (
              <Table.Th key={column.title} ta={column.right ? "right" : undefined}>
                {column.title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((item) => (
            <Table.Tr key={keyOf(item)} onClick={() => onOpen?.(item)} data-opens={onOpen !== undefined} data-marked={markedOf?.(item)}>
              {columns.map((column, index) => (
                <Table.Td key={column.title} ta={column.right ? "right" : undefined} maw={column.width}>
                  {index === 0 && onOpen !== undefined ? (
                    <UnstyledButton
                      className={classes.open}
                      aria-label={nameOf?.(item)}
                      onClick={(event) => {
                        event.stopPropagation();
                        onOpen(item);
                      }}
                    >
                      {column.cell(item)}
                    </UnstyledButton>
                  ) : (
                    column.cell(item)
                  )}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
